package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Ordered;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Threads of the shim's in a process that lacks memory or threads, on real servers (BAR-61). */
class OwnFaultsTest {
  private static RedisServers servers;

  @BeforeAll
  static void start() {
    servers = new RedisServers("0ms");
  }

  @AfterAll
  static void end() {
    servers.close();
  }

  /** Nobody would hear the push channel any more, nor wait for less than all of the time. */
  @Test
  void whoAsksKnowsThatNobodyReadsAnyMore_BAR_61() throws Exception {
    CompletableFuture<Exception> broken = new CompletableFuture<>();
    try (Session session = new Session(Target.of(servers.url("b1")), 60_000)) {
      session.track(new Session.Listener() {
        @Override
        public void changed() {
          throw new OutOfMemoryError("no memory to hear");
        }

        @Override
        public void reset() {}

        @Override
        public void broken(Exception error) {
          broken.complete(error);
        }
      });
      servers.client("a").set("own-fault", "v");
      assertThat(broken.get(50, TimeUnit.SECONDS)).hasRootCauseInstanceOf(OutOfMemoryError.class);
      assertThatThrownBy(() -> session.command("PING")).hasRootCauseInstanceOf(OutOfMemoryError.class);
    }
  }

  @Test
  void theMarkerTriesAgain_BAR_61() {
    Target real = Target.of(servers.url("a"));
    AtomicInteger faults = new AtomicInteger(2);
    Target lacking = new Target(
        real.address(),
        timeout -> {
          if (faults.getAndDecrement() > 0) {
            throw new OutOfMemoryError("no memory to connect");
          }
          return real.connect(timeout);
        },
        timeout -> null,
        0);
    Marker marker = Marker.of("posts", lacking, "own-fault-marks");
    try {
      marker.wrote(new Ordered("0123456789abcdef", 1));
      RedisServers.until(() -> servers.client("a").exists("own-fault-marks"), "it marks");
    } finally {
      marker.stop();
    }
  }

  @Test
  void whatTheApplicationWaitsForIsDoneOnceWithoutAThread_BAR_61() {
    List<Runnable> queued = new ArrayList<>();
    AtomicInteger done = new AtomicInteger();
    Handover.to(
        work -> {
          queued.add(work);
          throw new OutOfMemoryError("unable to create native thread");
        },
        done::incrementAndGet);
    assertThat(done.get()).isOne();
    queued.forEach(Runnable::run);
    assertThat(done.get()).isOne();
  }
}
