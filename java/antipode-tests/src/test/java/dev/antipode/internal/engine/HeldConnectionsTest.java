package dev.antipode.internal.engine;

import static dev.antipode.internal.engine.EngineTest.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.StoreOptions;
import dev.antipode.internal.engine.EngineTest.LogShim;
import dev.antipode.shim.MetConnections;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Connections that a client's pool holds: they lead where they were opened, whatever the client says by now (BAR-68). */
@ExtendWith(AntipodeIsolated.class)
class HeldConnectionsTest {
  private static final StoreOptions PLAIN = StoreOptions.named("log");
  private static final BarrierOptions PATIENT = EngineTest.proceeding(EngineTest.at(5), Duration.ofMinutes(1));

  private final Replica said = new Replica("said", 5);
  private final Replica other = new Replica("other", 0);
  private final List<Object> held = new CopyOnWriteArrayList<>(); // they lead to the other one
  private final Object client = new Object();
  private RegionStore store;

  @BeforeEach
  void register() {
    Replica.configure(Duration.ofMinutes(1));
    store = FakeShim.store(LogShim::new, PLAIN);
    MetConnections met =
        new MetConnections(connection -> store.reach(PLAIN, other, connection, each -> held.contains(each)));
    store.expectServer(PLAIN, "a client", client, it -> List.of(said), it -> "")
        .watchHeld(it -> met.meetAll(held))
        .found(List.of(said));
  }

  private static BarrierResult passed(CompletableFuture<BarrierResult> waiting, Replica late) {
    late.untilAsked(1);
    assertThat(waiting).isNotDone();
    late.applied = 5;
    return waiting.join();
  }

  @Test
  void itsServerIsJudgedBeforeItIsHandedOut_BAR_68() {
    assertThat(Antipode.barrier(PATIENT).satisfied()).isTrue();
    held.add(new Object());
    assertThat(passed(Replica.waiting(PATIENT), other).satisfied()).isTrue();
    assertThat(store.servers(false)).extracting(ServerEngine::address).containsExactlyInAnyOrder("said", "other");
  }

  /** The barrier waited at the server of its words alone when the pool opened it. */
  @Test
  void oneThatIsOpenedWhileABarrierWaits_BAR_68_BAR_65() {
    said.applied = 0;
    CompletableFuture<BarrierResult> waiting = Replica.waiting(PATIENT);
    said.untilAsked(1);
    held.add(new Object());
    said.applied = 5;
    assertThat(passed(waiting, other).satisfied()).isTrue();
  }

  @Test
  void theFreePathSeesIt_BAR_68_BAR_35() {
    try (LineageScope scope = Antipode.scope(EngineTest.at(5))) {
      assertThat(scope).isNotNull();
      until(() -> {
        Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofMinutes(1)));
        return FreePath.pass(BarrierOptions.defaults()) != null;
      });
      held.add(new Object());
      assertThat(FreePath.pass(BarrierOptions.defaults())).isNull();
      BarrierResult late = Antipode.barrier(
          BarrierOptions.defaults().timeout(Duration.ofMillis(100)).onTimeout(Policy.PROCEED));
      assertThat(late.satisfied()).as(late.explain()).isFalse();
    }
  }

  /** A pool's own fault, or another version of it, is one of discovery: no barrier fails by it, and none passes (BAR-68). */
  @Test
  void thoseThatCannotBeLookedAtAreNotKnown() {
    AtomicReference<RuntimeException> fault = new AtomicReference<>(new IllegalStateException("no such field"));
    store.expectServer(PLAIN, "another client", held, it -> List.of(said), it -> "")
        .watchHeld(it -> {
          if (fault.get() != null) {
            throw fault.get();
          }
        })
        .found(List.of(said));
    BarrierResult unproven = Antipode.barrier(EngineTest.proceeding(EngineTest.at(5), Duration.ofMillis(100)));
    assertThat(unproven.satisfied()).as(unproven.explain()).isFalse();
    assertThat(unproven.explain()).contains("no such field");
    fault.set(null);
    assertThat(Antipode.barrier(PATIENT).satisfied()).isTrue();
  }

  @Test
  void eachIsMetOnceUnlessThatFails() {
    List<Object> all = new ArrayList<>();
    MetConnections met = new MetConnections(connection -> {
      all.add(connection);
      if (all.size() == 1) {
        throw new IllegalStateException("not yet");
      }
    });
    assertThatThrownBy(() -> met.meetAll(List.of("one"))).isInstanceOf(IllegalStateException.class);
    met.meetAll(List.of("one", "two"));
    met.meet("two");
    assertThat(all).containsExactly("one", "one", "two");
  }
}
