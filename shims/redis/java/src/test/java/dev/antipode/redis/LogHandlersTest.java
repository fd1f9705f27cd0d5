package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.LineageScope;
import dev.antipode.StoreOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

/** A log handler of the application that throws: commands that were done, and barriers, do not fail by it (SHIM-2). */
class LogHandlersTest extends WithServers {
  @Test
  void commandsAndBarriersGoOn_SHIM_2_BAR_61() {
    AtomicInteger thrown = new AtomicInteger();
    Handler handler = new Handler() {
      @Override
      public void publish(LogRecord line) {
        thrown.incrementAndGet();
        throw new AssertionError("the disk is full");
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    };
    Logger logger = Logger.getLogger("dev.antipode");
    io.lettuce.core.RedisClient client = io.lettuce.core.RedisClient.create(LettuceResources.SHARED, servers.url("a"));
    logger.addHandler(handler);
    try (StatefulRedisConnection<String, String> open = client.connect()) {
      StatefulRedisConnection<String, String> lettuce = AntipodeLettuce.wrap(open, StoreOptions.named("others"));
      assertThat(wrapped().set("k", "1")).isEqualTo("OK"); // outside any scope, which is warned of
      assertThat(lettuce.sync().set("l", "1")).isEqualTo("OK");
      assertThat(thrown.get()).isPositive();
      try (LineageScope scope = Antipode.scope()) {
        wrapped().set("k", "2");
        lettuce.sync().set("l", "2");
        BarrierResult passed = Antipode.barrier(BarrierOptions.defaults());
        assertThat(passed.complete()).as(passed.explain()).isTrue();
        assertThat(scope.lineage().ids()).hasSize(2);
      }
    } finally {
      logger.removeHandler(handler);
      client.shutdown();
    }
  }
}
