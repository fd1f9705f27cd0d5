package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.WriteId;
import dev.antipode.internal.engine.FollowRegistry;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** How often a standby is asked that replays all the time (BAR-66, REC-21), on real servers. */
class PaceTest extends QuietRegion {
  private static final int MOST_A_SECOND = 40;

  private volatile boolean ended;
  private final Thread writing = new Thread(this::write);

  /** The primary takes writes all the time. */
  @BeforeEach
  void start() {
    writing.start();
  }

  @AfterEach
  void end() throws InterruptedException {
    ended = true;
    writing.join();
  }

  private void write() {
    try (Connection plain = region().plain("a").getConnection()) {
      while (!ended) {
        Region.update(plain, Region.INSERT, newKey(), "load");
        LockSupport.parkNanos(1_000_000);
      }
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private static BarrierOptions patient(Lineage lineage) {
    return BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(60)).onTimeout(Policy.PROCEED);
  }

  /** A write that no server will have. */
  private WriteId far() {
    Ordered near = (Ordered) write(newKey()).ofStore(STORE).get(0).version();
    return WriteId.position(STORE, near.epoch(), near.counter() + 1_000_000_000_000L);
  }

  private static Server standby() {
    RegisteredStore store = Registry.current().need(STORE);
    return store.serverAt(store.replicas().get(0));
  }

  private static void untilAskedSeldom() {
    Server standby = standby();
    Deque<long[]> seen = new ArrayDeque<>(); // when, and how often it had been asked by then
    AtomicReference<Look> last = new AtomicReference<>();
    Region.until(() -> {
      long now = System.nanoTime();
      if (!(standby.session() instanceof Look look)) {
        return false;
      }
      if (last.getAndSet(look) != look) { // the connection was made anew
        seen.clear();
      }
      seen.add(new long[] {now, look.looks()});
      while (now - seen.peek()[0] > TimeUnit.SECONDS.toNanos(2)) {
        seen.poll();
      }
      double seconds = (now - seen.peek()[0]) / 1e9;
      return seconds > 1 && look.looks() - seen.peek()[1] <= MOST_A_SECOND * seconds;
    }, "it is asked seldom");
  }

  /** What is far is looked at once in fifty milliseconds; what is near is seen all the same. */
  @Test
  void aStandbyThatReplaysAllTheTimeIsAskedWhenAPositionShouldBeThere_BAR_66() {
    CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(patient(Lineage.of(far())));
    untilAskedSeldom();
    waiting.cancel(true);
    for (int turn = 0; turn < 5; turn++) {
      String key = newKey();
      assertThat(Antipode.barrier(patient(write(key))).satisfied()).isTrue();
      assertThat(region().shows("b1", key)).isEqualTo("v");
    }
  }

  /** Nobody waits: it is asked less and less, however much it replays. */
  @Test
  void whatIsOnlyFollowedIsAskedForAtLeisure_REC_21() {
    assertThat(FollowRegistry.follow(standby(), List.of(far()), writes -> { })).isTrue();
    untilAskedSeldom();
    FollowRegistry.forget();
  }
}
