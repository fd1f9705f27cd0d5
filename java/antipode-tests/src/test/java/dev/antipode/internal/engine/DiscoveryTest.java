package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.ServerResult;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.StoreResult;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Servers that somebody else names: a supplier, a client that is not connected yet (BAR-22, BAR-52 to BAR-55). */
@ExtendWith(AntipodeIsolated.class)
class DiscoveryTest {
  private static final Lineage ONE = Lineage.of(new WriteId("s", "k", new Ordered("", 1)));
  private static final BarrierOptions PATIENT = BarrierOptions.defaults()
      .lineage(ONE).timeout(Duration.ofSeconds(60)).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
  private static final BarrierOptions HASTY = PATIENT.timeout(Duration.ofMillis(200));

  private static volatile Fake late;

  private final Fake here = new Fake("here", FakeShim.always(Visibility.VISIBLE));
  private final Fake there = new Fake("there", FakeShim.always(Visibility.VISIBLE));
  private volatile Collection<?> named = List.of(here, there);

  @AfterEach
  void atLeisure() {
    Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
    Discovery.current(TimeUnit.SECONDS.toNanos(10));
  }

  /** A wrap that names no servers, and one that does. */
  private static final StoreOptions PLAIN = StoreOptions.named("s");

  private StoreOptions listing = PLAIN.replicas(() -> named);

  private RegionStore listed() {
    return FakeShim.store(FakeShim::new, listing);
  }

  private static List<String> judged(StoreResult result) {
    return result.servers().stream().filter(server -> !server.leftOut()).map(ServerResult::address).sorted().toList();
  }

  private static StoreResult barrier(BarrierOptions options) {
    return Antipode.barrier(options).store("s");
  }

  private static void assertUnproven(StoreResult result, UnprovenKind kind) {
    assertThat(result.verdict()).isEqualTo(Verdict.UNPROVEN);
    assertThat(result.kind()).isEqualTo(kind);
  }

  @Test
  void anEmptyListInCodeIsAMistake_BAR_53() {
    StoreOptions options = StoreOptions.named("s");
    assertThatThrownBy(() -> options.replicas(List.of())).isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("names no server");
  }

  @Test
  void anEmptyAnswerIsAFaultAndTheLastOneStandsForAWhile_BAR_53() {
    RegionStore store = listed();
    store.useServer(listing, new Fake("own", FakeShim.always(Visibility.VISIBLE)));
    assertThat(judged(barrier(PATIENT))).containsExactly("here", "there");
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    named = List.of();
    for (int turn = 0; turn < 3; turn++) {
      assertThat(judged(barrier(PATIENT))).containsExactly("here", "there");
    }
    Discovery.hurry(0, 0);
    assertUnproven(barrier(HASTY), UnprovenKind.DISCOVERY);
    assertThat(Antipode.barrier(HASTY).satisfied()).isFalse();
    named = List.of(there);
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    EngineTest.until(() -> judged(barrier(PATIENT)).equals(List.of("there")));
  }

  /** Has a list answer once, and then so slowly that a barrier is there before it, however long ago it was asked last. */
  private void idle(Supplier<Collection<?>> again) throws InterruptedException {
    AtomicInteger asked = new AtomicInteger();
    listing = PLAIN.replicas(() -> {
      if (asked.getAndIncrement() == 0) {
        return List.of(here);
      }
      pause(300);
      return again.get();
    });
    listed();
    assertThat(judged(barrier(PATIENT))).containsExactly("here");
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    Discovery.current(TimeUnit.SECONDS.toNanos(1));
    pause(1100);
  }

  private static void pause(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void behindIdleTimeABarrierWaitsForWhatDiscoverySaysNow_BAR_67() throws Exception {
    idle(() -> List.of(there));
    assertThat(judged(barrier(PATIENT))).containsExactly("there");
  }

  /** It has been asked, only too long ago. */
  @Test
  void aBarrierThatDiscoveryDoesNotAnswerInTimeSaysWhy_BAR_67() throws Exception {
    CompletableFuture<Collection<?>> answer = new CompletableFuture<>();
    idle(answer::join);
    StoreResult found = barrier(HASTY);
    answer.complete(List.of(here));
    assertUnproven(found, UnprovenKind.DISCOVERY);
    assertThat(found.reason()).contains("what was said of them is too old");
  }

  @Test
  void behindIdleTimeAFaultOfDiscoveryLeavesTheLastAnswer_BAR_53() throws Exception {
    idle(List::of);
    long began = System.nanoTime();
    assertThat(judged(barrier(PATIENT))).containsExactly("here");
    assertThat(System.nanoTime() - began).isLessThan(TimeUnit.SECONDS.toNanos(30));
  }

  @Test
  void serversAndWhoLeftAreNamedOfOneMoment_BAR_65() throws Exception {
    named = List.of(here);
    RegionStore store = listed();
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    for (int turn = 0; turn < 2_000; turn++) {
      named = List.of(turn % 2 == 0 ? there : here);
      StoreRequest asked = StoreRequest.of(store, List.of(), false);
      List<String> judged = asked.servers().stream().map(ServerEngine::address).toList();
      assertThat(judged).hasSize(1);
      assertThat(asked.gone()).doesNotContain(judged.get(0));
    }
  }

  /** An exception of the application's that cannot even be told. */
  private static final class Untold extends RuntimeException {
    @Override
    public String getMessage() {
      throw new IllegalStateException("nor can this one be told");
    }
  }

  @Test
  void whatCannotBeToldOfAFaultEndsNoQuestion_BAR_61() {
    AtomicInteger untold = new AtomicInteger();
    listing = PLAIN.replicas(() -> {
      if (untold.get() > 0 && untold.getAndDecrement() > 0) {
        throw new Untold();
      }
      return named;
    });
    named = List.of();
    assertThat(listed().servers(false)).hasSize(1);
    untold.set(2);
    CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(PATIENT);
    EngineTest.until(() -> untold.get() == 0);
    named = List.of(here, there);
    assertThat(waiting.join().complete()).isTrue();
  }

  /** A shim that takes its time to say what a server is called. */
  private static final class SlowShim extends FakeShim {
    private final CountDownLatch asked = new CountDownLatch(1);
    private final CountDownLatch told = new CountDownLatch(1);

    @Override
    public String address(Object target) {
      if (((Fake) target).name.equals("there")) {
        asked.countDown();
        try {
          told.await();
        } catch (InterruptedException interrupted) {
          Thread.currentThread().interrupt();
        }
      }
      return super.address(target);
    }
  }

  /** BAR-29: what a shim does for one server keeps no barrier of others from its deadline. */
  @Test
  void aServersAddressIsAskedForWithoutTheStoresLock() throws Exception {
    SlowShim slow = new SlowShim();
    named = List.of(here);
    RegionStore store = FakeShim.store(() -> slow, listing);
    named = List.of(here, there);
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    CompletableFuture<StoreResult> passed = CompletableFuture.supplyAsync(() -> {
      barrier(HASTY); // has the list asked
      try {
        assertThat(slow.asked.await(1, TimeUnit.MINUTES)).isTrue();
      } catch (InterruptedException error) {
        throw new AssertionError(error);
      }
      assertThat(store.serverAt("here")).isNotNull();
      return barrier(PATIENT);
    });
    try {
      assertThat(passed.get(1, TimeUnit.MINUTES).verdict()).isEqualTo(Verdict.VISIBLE);
    } finally {
      slow.told.countDown();
    }
  }

  @Test
  void whoWaitsForAnAnswerThenWaitsAtEachServer_BAR_53() {
    named = List.of();
    RegionStore store = listed();
    store.useServer(listing, new Fake("own", FakeShim.always(Visibility.VISIBLE)));
    assertUnproven(barrier(HASTY), UnprovenKind.DISCOVERY);
    there.answer = FakeShim.always(Visibility.NOT_YET);
    CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(PATIENT);
    named = List.of(here, there);
    EngineTest.until(() -> there.asked.get() > 1);
    assertThat(waiting).isNotDone();
    there.answer = FakeShim.always(Visibility.VISIBLE);
    assertThat(waiting.join().complete()).isTrue();
    assertThat(judged(waiting.join().store("s"))).containsExactly("here", "there");
  }

  @Test
  void anErrorOfItIsAFaultToo_BAR_53() {
    RegionStore store = FakeShim.store(FakeShim::new, StoreOptions.named("s").replicas(() -> {
      if (named == null) {
        throw new IllegalStateException("no name service");
      }
      return named;
    }));
    assertThat(judged(barrier(PATIENT))).containsExactly("here", "there");
    named = null;
    Discovery.hurry(0, 0);
    StoreResult result = barrier(HASTY);
    assertUnproven(result, UnprovenKind.DISCOVERY);
    EngineTest.until(() -> barrier(HASTY).reason().contains("no name service"));
    assertThat(store.servers(false)).hasSize(1);
  }

  @Test
  void whatIsTakenAwayIsNamedAsLeftOutForAWhile_BAR_54() {
    listed();
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    named = List.of(here);
    EngineTest.until(() -> !Antipode.barrier(PATIENT).complete());
    BarrierResult result = Antipode.barrier(PATIENT);
    assertThat(result.satisfied()).isTrue();
    assertThat(result.store("s").leftOut()).containsExactly("there");
    assertThat(judged(result.store("s"))).containsExactly("here");
    named = List.of(here, there);
    EngineTest.until(() -> Antipode.barrier(PATIENT).complete());
    Antipode.configure(Settings.defaults().leftServer(Duration.ZERO));
    named = List.of(here);
    EngineTest.until(() -> judged(barrier(PATIENT)).size() == 1);
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
  }

  @Test
  void aWrapWithoutAListAddsItsOwnServer_BAR_22() {
    RegionStore store = FakeShim.store(FakeShim::new, PLAIN.replicas(List.of(here)));
    store.useServer(PLAIN.replicas(List.of(here)), new Fake("writer's", FakeShim.always(Visibility.VISIBLE)));
    assertThat(judged(barrier(PATIENT))).containsExactly("here");
    there.answer = FakeShim.always(Visibility.NOT_YET);
    store.useServer(PLAIN, there);
    assertThat(judged(barrier(PATIENT.timeout(Duration.ZERO)))).containsExactly("here", "there");
    assertThat(Antipode.barrier(PATIENT.timeout(Duration.ZERO)).satisfied()).isFalse();
    there.answer = FakeShim.always(Visibility.VISIBLE);
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
    assertThat(judged(barrier(PATIENT.reach(Reach.REPLICA)))).containsExactly("there", "writer's");
  }

  @Test
  void aClientThatHasNotConnectedIsWaitedForBesideAList_BAR_22_BAR_52() {
    RegionStore store = FakeShim.store(FakeShim::new, PLAIN.replicas(List.of(here)));
    Discovery listedToo = store.expectServer(PLAIN.replicas(List.of(here)), "another pool", this, whose -> List.of());
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
    Discovery expected = store.expectServer(PLAIN, "a pool", this, whose -> List.of());
    assertUnproven(barrier(HASTY), UnprovenKind.NOT_OPENED);
    assertThat(expected.found(List.of(there))).isTrue();
    assertThat(judged(barrier(PATIENT))).containsExactly("here", "there");
    assertThat(listedToo.whose().isOfRegion()).isFalse();
  }

  @Test
  void aClientsOwnServerThatIsTakenAwayIsLeftOut_BAR_54() {
    RegionStore store = listed();
    store.useServer(listing, there); // its connections may still lead there
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    named = List.of(here);
    EngineTest.until(() -> !Antipode.barrier(PATIENT).complete());
    assertThat(barrier(PATIENT).leftOut()).containsExactly("there");
    store.useServer(PLAIN, there); // and now it is judged
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
    assertThat(judged(barrier(PATIENT))).containsExactly("here", "there");
  }

  /** A client of whoever has a role: others name its servers. */
  private record Role(String name, Supplier<Collection<?>> servers) {}

  private static final class NamingShim extends FakeShim {
    @Override
    public String address(Object target) {
      return target instanceof Role role ? role.name() : super.address(target);
    }

    @Override
    public Callable<Collection<?>> naming(Object target) {
      return target instanceof Role role ? role.servers()::get : null;
    }
  }

  @Test
  void whoNamesAClientsOwnServersIsAskedAgain_BAR_53_BAR_54() {
    RegionStore store = FakeShim.store(NamingShim::new, PLAIN);
    named = List.of(here);
    Role primary = new Role("primary", () -> named);
    assertThat(store.useServer(PLAIN, primary)).isSameAs(store.useServer(PLAIN, primary));
    assertThat(judged(barrier(PATIENT))).containsExactly("here");
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    named = List.of(there);
    EngineTest.until(() -> judged(barrier(PATIENT)).equals(List.of("there")));
    assertThat(barrier(PATIENT).leftOut()).containsExactly("here");
    assertThat(judged(barrier(PATIENT.reach(Reach.REPLICA)))).containsExactly("there");
    Discovery.hurry(0, 0);
    named = List.of();
    assertUnproven(barrier(HASTY), UnprovenKind.DISCOVERY);
  }

  /** What a wrap with a list goes to by a role is asked for, too, and does not keep barriers from being free. */
  @Test
  void whoNamesAWritersServersHoldsNobodyUp_BAR_35_BAR_54() {
    RegionStore store = FakeShim.store(NamingShim::new, PLAIN.replicas(List.of(here)));
    store.useServer(PLAIN.replicas(List.of(here)), new Role("primary", () -> named));
    named = List.of(there);
    EngineTest.until(() -> store.servers(true).stream().anyMatch(server -> server.address().equals("there")));
    assertThat(judged(barrier(PATIENT))).containsExactly("here");
    assertThat(store.isDiscoveryDue(Ticks.now())).isFalse();
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(60));
    named = List.of(here);
    EngineTest.until(() -> barrier(PATIENT).leftOut().equals(List.of("there")));
  }

  @Test
  void aRoleInAListOrFoundLaterIsAskedForItsServers_BAR_52_BAR_53() {
    named = List.of(there);
    Role replica = new Role("replica", () -> named);
    RegionStore store = FakeShim.store(NamingShim::new, PLAIN.replicas(List.of(here, replica)));
    assertThat(judged(barrier(PATIENT))).containsExactly("here", "there");
    Discovery expected = store.expectServer(PLAIN, "a pool", this, whose -> List.of());
    CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(PATIENT);
    Fake primary = new Fake("its own", FakeShim.always(Visibility.VISIBLE));
    expected.found(List.of(new Role("primary", () -> List.of(primary))));
    assertThat(judged(waiting.join().store("s"))).containsExactly("here", "its own", "there");
    assertThat(judged(barrier(PATIENT))).containsExactly("here", "its own", "there");
    FakeShim.store(NamingShim::new, PLAIN.replicas(() -> List.of(replica)));
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
  }

  @Test
  void aClientWithoutAServerIsWaitedFor_BAR_52() {
    RegionStore store = FakeShim.store(FakeShim::new, StoreOptions.named("s"));
    store.useServer(PLAIN, here);
    Object pool = new Object();
    late = null;
    Discovery expected =
        store.expectServer(PLAIN, "a pool", pool, whose -> late == null ? List.of() : List.of(late));
    assertUnproven(barrier(HASTY), UnprovenKind.NOT_OPENED);
    CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(PATIENT);
    late = there;
    assertThat(waiting.join().complete()).isTrue();
    assertThat(judged(waiting.join().store("s"))).containsExactly("here", "there");
    assertThat(expected.isDue(Ticks.now())).as("asked no more").isFalse();
    assertThat(pool).isNotNull();
  }

  @Test
  void aClientThatIsGoneIsWaitedForNoMore_BAR_52() {
    RegionStore store = FakeShim.store(FakeShim::new, StoreOptions.named("s"));
    store.useServer(PLAIN, here);
    Discovery expected = store.expectServer(PLAIN, "a pool", new Object(), whose -> List.of());
    EngineTest.until(() -> {
      System.gc();
      return expected.isOver();
    });
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
  }

  /** Says how often a connection to it was given up. */
  static final class ClosingShim extends FakeShim {
    static final AtomicInteger CLOSED = new AtomicInteger();

    @Override
    public void close(Server server) {
      CLOSED.incrementAndGet();
      super.close(server);
    }
  }

  @Test
  void ourOwnConnectionIsMadeAnewWhileBarriersCome_BAR_55() {
    Antipode.configure(Settings.defaults().reconnect(Duration.ofMillis(100)));
    FakeShim.store(ClosingShim::new, StoreOptions.named("s").replicas(List.of(here)));
    int before = ClosingShim.CLOSED.get();
    EngineTest.until(() -> {
      Antipode.barrier(PATIENT);
      return ClosingShim.CLOSED.get() - before >= 3;
    });
  }
}
