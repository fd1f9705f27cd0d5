package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.Settings;
import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Reads that wait, at a server that does not answer: the client's own time-outs are 20 s. */
class FrozenReadsTest extends WithClients {
  private static final String SERVER = "b2";
  private static final Object[] SCRIPT = {"EVAL", "return redis.call('GET', KEYS[1])", "1", "k"};

  private Lineage lineage;

  private void assertEndsInTime(ThrowingCallable read) {
    long began = System.nanoTime();
    try (Reading seen = Antipode.reading(lineage)) {
      assertThatThrownBy(read).isInstanceOf(BarrierTimeoutException.class).hasMessageContaining("does not answer");
    }
    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(10));
  }

  @Test
  void theWaitEndsByItsDeadlineAndItsConnectionIsClosed_SHIM_47() {
    Antipode.configure(Settings.defaults().timeout(Duration.ofMillis(400)));
    TestClient posts = posts();
    TestClient single = patient(SERVER);
    TestClient scripts = patient(SERVER);
    TestClient batches = patient(SERVER);
    Object before = single.call("CLIENT", "ID");
    scripts.call("PING");
    try (TestClient.Batch warm = batches.batch()) {
      warm.add("PING").send();
    }
    servers.lab().freeze("redis", SERVER);
    try {
      try (LineageScope scope = Antipode.scope()) {
        posts.call("SET", "k", "v");
        lineage = scope.lineage();
      }
      assertEndsInTime(() -> single.call("GET", "k"));
      assertEndsInTime(() -> scripts.call(SCRIPT));
      TestClient.Batch batch = batches.batch();
      assertEndsInTime(() -> {
        if (batch.add("GET", "k").send().get(0) instanceof Throwable among) { // the replies
          throw among;
        }
      });
    } finally {
      servers.lab().thaw("redis", SERVER);
    }
    RedisServers.until(() -> "v".equals(single.call("GET", "k")), "another connection reads");
    assertThat(single.call("CLIENT", "ID")).isNotEqualTo(before);
  }
}
