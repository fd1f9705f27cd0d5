package dev.antipode.internal.engine;

import static dev.antipode.internal.diagnostics.dryrun.Lines.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How a server is asked where nobody waits, and only records want to know (REC-21). */
@ExtendWith(AntipodeIsolated.class)
class FollowedAtLeisureTest {
  private static final List<WriteId> ONE = List.of(WriteId.position("posts", "e", 1));

  /** Positions, and a channel that says again and again that something has changed. */
  private static final class PushShim extends FakeShim {
    static final AtomicInteger OPENED = new AtomicInteger();
    static final AtomicInteger PUSHED = new AtomicInteger();

    @Override
    public Capabilities capabilities() {
      return Capabilities.positions().push(true);
    }

    @Override
    public Watch watch(Server server) {
      OPENED.incrementAndGet();
      AtomicBoolean ended = new AtomicBoolean();
      EngineTest.started(() -> {
        while (!ended.get()) {
          server.changed();
          PUSHED.incrementAndGet();
          LockSupport.parkNanos(2_000_000);
        }
      });
      return () -> ended.set(true);
    }

    static RegionStore posts(Fake fake) {
      OPENED.set(0);
      PUSHED.set(0);
      return store(PushShim::new, StoreOptions.named("posts").replicas(List.of(fake)));
    }
  }

  /** REC-21: it moves with every question, and could push. */
  @Test
  void whereNobodyWaitsAServerIsAskedAtLeisure() {
    List<Long> askedAt = new CopyOnWriteArrayList<>();
    RegionStore store = PushShim.posts(new Fake("p", (ids, server) -> {
      askedAt.add(System.nanoTime());
      server.applied("i", "f", Map.of("f", (long) askedAt.size()));
      return Collections.nCopies(ids.size(), askedAt.size() > 13 ? Visibility.VISIBLE : Visibility.NOT_YET);
    }));
    List<FollowedWrite> seen = new CopyOnWriteArrayList<>();
    assertThat(FollowRegistry.follow(store.servers(false).get(0), ONE, seen::addAll)).isTrue();
    until(() -> !seen.isEmpty());
    assertThat(askedAt.get(12) - askedAt.get(2)).as("from 5 ms on, a quarter more each time").isGreaterThan(150_000_000);
    assertThat(PushShim.OPENED).as("no push of every change, for a record").hasValue(0);
  }

  /** REC-21, BAR-38: by the store's push, whoever was there before. */
  @Test
  void aBarrierBesideWhatIsFollowedWaitsAsEver() throws Exception {
    AtomicBoolean isThere = new AtomicBoolean();
    Fake fake = new Fake(
        "p", (ids, server) -> Collections.nCopies(ids.size(), isThere.get() ? Visibility.VISIBLE : Visibility.NOT_YET));
    RegionStore store = PushShim.posts(fake);
    List<FollowedWrite> seen = new CopyOnWriteArrayList<>();
    assertThat(FollowRegistry.follow(store.servers(false).get(0), ONE, seen::addAll)).isTrue();
    until(() -> fake.asked.get() > 2);
    CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(BarrierOptions.defaults()
        .lineage(Lineage.of(WriteId.position("posts", "e", 2))).timeout(Duration.ofSeconds(20)));
    until(() -> PushShim.PUSHED.get() > 20);
    int asked = fake.asked.get();
    until(() -> fake.asked.get() > asked);
    assertThat(waiting).isNotDone();
    isThere.set(true);
    assertThat(waiting.get(20, TimeUnit.SECONDS).satisfied()).isTrue();
    until(() -> !seen.isEmpty());
  }
}
