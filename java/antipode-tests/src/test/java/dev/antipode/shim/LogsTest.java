package dev.antipode.shim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.LineageScope;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.testing.AntipodeIsolated;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Handlers of the application that throw, and classes of the JDK that cannot be loaded: no log line is an outcome (BAR-61). */
@ExtendWith(AntipodeIsolated.class)
class LogsTest {
  private static final Logger LOGGER = Logger.getLogger("dev.antipode");

  private final AtomicInteger thrown = new AtomicInteger();
  private final Handler handler = new Handler() {
    @Override
    public void publish(LogRecord line) {
      thrown.incrementAndGet();
      throw new ExceptionInInitializerError("no descriptor to read time zones");
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  };

  @BeforeEach
  void begin() {
    LOGGER.addHandler(handler);
  }

  @AfterEach
  void end() {
    LOGGER.removeHandler(handler);
  }

  @Test
  void writeAndBarrierGoOn_SHIM_2_BAR_61() {
    MemoryClient client = MemoryStore.named("blog-posts").client("a");
    client.set("outside", "1"); // which is warned of
    assertThat(client.get("outside")).isEqualTo("1");
    assertThat(thrown.get()).isOne();
    try (LineageScope scope = Antipode.scope()) {
      client.set("k", "1");
      BarrierResult result = Antipode.barrier(BarrierOptions.defaults().lineage(scope.lineage()));
      assertThat(result.complete()).as(result.explain()).isTrue();
    }
    assertThat(thrown.get()).isGreaterThan(1); // the first barrier says what is in force
  }

  @Test
  void lineThatCannotBeWrittenThrowsNothing_BAR_61() {
    Logs.warn("AP207", "kind", "words");
    Logs.error("AP209", "words", new IllegalStateException());
    assertThat(thrown.get()).isEqualTo(2);
  }
}
