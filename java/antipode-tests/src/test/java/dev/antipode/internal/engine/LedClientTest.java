package dev.antipode.internal.engine;

import static dev.antipode.internal.engine.EngineTest.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.ServerResult;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.engine.EngineTest.LogShim;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A client that is led elsewhere: the servers that it had pass nobody while its new ones are named (BAR-52, BAR-65). */
@ExtendWith(AntipodeIsolated.class)
class LedClientTest {
  private static final BarrierOptions PATIENT = EngineTest.proceeding(EngineTest.at(5), Duration.ofMinutes(1));

  /** Tells the address of one server only when it may. */
  private static final class GatedShim extends LogShim {
    private final Fake late;
    private final CountDownLatch reached;
    private final CountDownLatch open;

    GatedShim(Fake late, CountDownLatch reached, CountDownLatch open) {
      this.late = late;
      this.reached = reached;
      this.open = open;
    }

    @Override
    public String address(Object target) {
      if (target == late) {
        reached.countDown();
        pass(open);
      }
      return super.address(target);
    }
  }

  private final Replica old = new Replica("old", 5);
  private final Replica joined = new Replica("joined", 0);
  private final AtomicReference<Fake> client = new AtomicReference<>(old);
  private final AtomicReference<Runnable> meanwhile = new AtomicReference<>(() -> { });
  private final CountDownLatch reached = new CountDownLatch(1);
  private final CountDownLatch open = new CountDownLatch(1);
  private RegionStore store;

  private static void pass(CountDownLatch latch) {
    try {
      assertThat(latch.await(1, TimeUnit.MINUTES)).isTrue();
    } catch (InterruptedException interrupted) {
      throw new AssertionError(interrupted);
    }
  }

  private Discovery register() {
    Replica.configure(Duration.ofMinutes(1));
    StoreOptions plain = StoreOptions.named("log");
    store = FakeShim.store(() -> new GatedShim(joined, reached, open), plain);
    return store.expectServer(plain, "a client", client, it -> List.of(client.get()), it -> {
      meanwhile.getAndSet(() -> { }).run();
      return client.get();
    });
  }

  private static BarrierResult free() {
    return FreePath.pass(BarrierOptions.defaults());
  }

  private static void untilFree() {
    until(() -> {
      Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofMinutes(1)));
      return free() != null;
    });
  }

  /** BAR-35, BAR-52, BAR-65: neither the free path, nor a barrier that names its servers then. */
  @Test
  void itsOldServersCountNoMoreWhileTheNewOnesAreNamed() {
    register();
    try (LineageScope scope = Antipode.scope(EngineTest.at(5))) {
      assertThat(scope).isNotNull();
      untilFree();
      client.set(joined);
      CompletableFuture<BarrierResult> waiting = Replica.waiting(PATIENT);
      pass(reached);
      assertThat(free()).isNull();
      assertThat(store.servers(false)).extracting(ServerEngine::address).containsExactly("a client");
      open.countDown();
      joined.untilAsked(1);
      assertThat(waiting).isNotDone();
      assertThat(free()).isNull();
      joined.applied = 5;
      assertThat(waiting.join().satisfied()).isTrue();
      assertThat(waiting.join().store("log").servers().stream().filter(server -> !server.leftOut()))
          .extracting(ServerResult::address).containsExactly("joined");
    }
  }

  /** BAR-35, BAR-63: all proofs stand at one moment, also where one is lost while the others are looked at. */
  @Test
  void theFreePathSeesAProofThatIsLostWhileItLooks() {
    register();
    try (LineageScope scope = Antipode.scope(EngineTest.at(5))) {
      assertThat(scope).isNotNull();
      untilFree();
      meanwhile.set(() -> {
        old.applied = 0;
        old.server.reset();
      });
      assertThat(free()).isNull();
    }
  }

  /** BAR-35: what passed without a store is no pass where that one counts. */
  @Test
  void aStoreThatIsJoinedByAnotherModeIsJudgedAnew() {
    register();
    StoreOptions off = StoreOptions.named("off");
    FakeShim.store(LogShim::new, off.mode(Mode.OFF));
    try (LineageScope scope = Antipode.scope(EngineTest.at(5).including(WriteId.position("off", "e1", 5)))) {
      assertThat(scope).isNotNull();
      untilFree();
      FakeShim.store(LogShim::new, off.mode(Mode.ENFORCE));
      assertThat(free()).isNull();
    }
  }

  /** BAR-35, BAR-65: another barrier has the new ones named while the free path looks where the client leads. */
  @Test
  void theFreePathSeesServersThatAreNamedWhileItLooks() {
    Discovery source = register();
    open.countDown();
    try (LineageScope scope = Antipode.scope(EngineTest.at(5))) {
      assertThat(scope).isNotNull();
      untilFree();
      client.set(joined);
      meanwhile.set(source::ask);
      assertThat(free()).isNull();
      assertThat(store.servers(false)).extracting(ServerEngine::address).containsExactly("joined");
    }
  }
}
