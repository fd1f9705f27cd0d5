package dev.antipode.internal.engine;

import static dev.antipode.internal.engine.EngineTest.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.ServerResult;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.internal.engine.PresentServersTest.Form;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** A barrier ends when nothing is left to wait for: servers may leave while it waits at them (BAR-65, BAR-54). */
@ExtendWith(AntipodeIsolated.class)
class LeavingServersTest {
  private static final Lineage ONE = Lineage.of(new WriteId("s", "k", new Ordered("", 1)));
  private static final StoreOptions PLAIN = StoreOptions.named("s");
  private static final BarrierOptions PATIENT = BarrierOptions.defaults()
      .lineage(ONE).timeout(Duration.ofSeconds(60)).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);

  private final Fake there = new Fake("there", FakeShim.always(Visibility.VISIBLE));
  private final Fake late = new Fake("late", FakeShim.always(Visibility.NOT_YET));
  private volatile List<Fake> named = List.of(there, late);

  @BeforeEach
  void hurry() {
    Antipode.configure(Settings.defaults().poll(Duration.ofMillis(5)));
    Discovery.hurry(TimeUnit.MILLISECONDS.toNanos(200), TimeUnit.SECONDS.toNanos(60));
  }

  @AfterEach
  void atLeisure() {
    Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
  }

  private RegionStore listed() {
    return FakeShim.store(FakeShim::new, PLAIN.replicas(() -> named));
  }

  private static List<String> judged(BarrierResult result) {
    return result.store("s").servers().stream().filter(server -> !server.leftOut()).map(ServerResult::address).toList();
  }

  /** It ends before its deadline; what it says. */
  private static BarrierResult ended(CompletableFuture<BarrierResult> waiting) {
    BarrierResult result = waiting.join();
    assertThat(result.waited()).isLessThan(Duration.ofSeconds(50));
    return result;
  }

  /** BAR-22: nobody else comes, so it is the wait that has discovery asked again. */
  @ParameterizedTest
  @CsvSource({"REGION, BLOCKING", "REPLICA, BLOCKING", "REGION, FUTURE", "REPLICA, FUTURE_OF_THE_ENGINES_THREAD"})
  void discoveryDropsTheServerThatIsBehind(Reach reach, Form form) {
    RegionStore store = listed();
    CompletableFuture<BarrierResult> waiting = form.start(PATIENT.reach(reach));
    until(() -> store.parked() == 1 && late.asked.get() >= 2);
    named = List.of(there);
    BarrierResult result = ended(waiting);
    assertThat(result.satisfied()).isTrue();
    assertThat(result.complete()).isFalse();
    assertThat(judged(result)).containsExactly("there");
    assertThat(result.store("s").leftOut()).as("BAR-54").containsExactly("late");
    assertThat(store.parked()).isZero();
  }

  /** BAR-52: the client is looked at while the barrier waits, not behind that alone. */
  @ParameterizedTest
  @EnumSource(names = {"REGION", "REPLICA"})
  void aClientIsLedAwayFromTheServerThatIsBehind(Reach reach) {
    RegionStore store = FakeShim.store(FakeShim::new, PLAIN);
    AtomicReference<Fake> client = new AtomicReference<>(late);
    store.expectServer(PLAIN, "a client", client, it -> List.of(client.get()), it -> client.get());
    assertThat(Antipode.barrier(PATIENT.timeout(Duration.ofMillis(500)).reach(reach)).satisfied()).isFalse();
    CompletableFuture<BarrierResult> waiting = Form.BLOCKING.start(PATIENT.reach(reach));
    until(() -> store.parked() == 1);
    client.set(there);
    BarrierResult result = ended(waiting);
    assertThat(result.satisfied()).isTrue();
    assertThat(judged(result)).containsExactly("there");
    assertThat(result.store("s").leftOut()).containsExactly("late");
  }

  /** BAR-21: the list drops what is a wrapped client's own server; who waits for that one waits on. */
  @Test
  void aServerLeavesOneReachAlone() {
    StoreOptions listing = PLAIN.replicas(() -> named);
    RegionStore store = FakeShim.store(FakeShim::new, listing);
    store.useServer(listing, late);
    CompletableFuture<BarrierResult> region = Form.BLOCKING.start(PATIENT);
    CompletableFuture<BarrierResult> replica = Form.BLOCKING.start(PATIENT.reach(Reach.REPLICA));
    until(() -> store.parked() == 2);
    named = List.of(there);
    assertThat(judged(ended(region))).containsExactly("there");
    assertThat(replica).isNotDone();
    late.answer = FakeShim.always(Visibility.VISIBLE);
    assertThat(judged(ended(replica))).containsExactly("late");
  }

  /** A server that joins is waited for behind the wait, and no server that is judged is lost by it. */
  @Test
  void aChangeOfTheSetEndsNoWait() {
    RegionStore store = listed();
    CompletableFuture<BarrierResult> waiting = Form.BLOCKING.start(PATIENT);
    until(() -> store.parked() == 1 && late.asked.get() > 1 && there.asked.get() > 0);
    assertThat(store.isNamed(store.serverAt("late"), true)).as("the region's, where no client has one").isTrue();
    int before = there.asked.get();
    named = List.of(there, late, new Fake("joined", FakeShim.always(Visibility.VISIBLE)));
    until(() -> store.replicas().size() == 3);
    int asked = late.asked.get();
    until(() -> late.asked.get() > asked + 3);
    assertThat(there.asked.get()).as("it began no other wait").isEqualTo(before);
    late.answer = FakeShim.always(Visibility.VISIBLE);
    assertThat(judged(ended(waiting))).containsExactly("there", "late", "joined");
  }

  /** BAR-63: the wait there was over when the server left; others waited there then, for which it was looked. */
  @Test
  void aWaitIsBegunAnewAtAServerThatHasLeft() {
    WriteId another = new WriteId("s", "another", new Ordered("", 1));
    RegionStore store = listed();
    ServerEngine left = store.serverAt("there");
    there.answer = shows(ONE);
    late.answer = shows(Lineage.of(another));
    CompletableFuture<BarrierResult> waiting = Form.BLOCKING.start(PATIENT);
    CompletableFuture<BarrierResult> other = Form.BLOCKING.start(PATIENT.lineage(Lineage.of(another)));
    until(() -> store.parked() == 2 && left.live() == 1 && store.serverAt("late").live() == 1);
    there.answer = FakeShim.always(Visibility.NOT_YET);
    named = List.of(late);
    assertThat(judged(ended(other))).containsExactly("late");
    left.reset();
    late.answer = FakeShim.always(Visibility.VISIBLE);
    BarrierResult result = ended(waiting);
    assertThat(result.satisfied()).isTrue();
    assertThat(judged(result)).containsExactly("late");
  }

  private static FakeShim.Answer shows(Lineage lineage) {
    return (ids, server) -> ids.stream()
        .map(id -> lineage.ids().contains(id) ? Visibility.VISIBLE : Visibility.NOT_YET).toList();
  }

  /** BAR-63: its data were replaced meanwhile, and nobody has looked at the end of the first wait. */
  @Test
  void whatAServerShowedBeforeAnotherOneLeftIsNoPass() {
    RegionStore store = listed();
    CompletableFuture<BarrierResult> waiting = Form.BLOCKING.start(PATIENT.timeout(Duration.ofSeconds(3)));
    until(() -> store.parked() == 1 && there.asked.get() > 0);
    there.answer = FakeShim.always(Visibility.NOT_YET);
    store.serverAt("there").reset();
    named = List.of(there);
    BarrierResult result = waiting.join();
    assertThat(result.satisfied()).isFalse();
    assertThat(result.store("s").verdict()).isEqualTo(Verdict.TIMED_OUT);
    assertThat(result.store("s").reason()).contains("there");
  }

  /** Between its naming and the parking nobody waits there, and the thread that asks it has nothing to look for. */
  @Test
  void aServerLeavesBeforeTheBarrierIsParkedThere() {
    RegionStore store = listed();
    assertThat(Antipode.barrier(PATIENT.timeout(Duration.ofMillis(500))).satisfied()).isFalse();
    WaitGroup group = new WaitGroup(TimeUnit.SECONDS.toNanos(60), () -> { }, false);
    group.hasLost = server -> server.address().equals("late");
    StoreRequest asked = new StoreRequest(store, ONE.ofStore("s"), List.of(store.serverAt("late")));
    assertThat(ServerWaiting.park(group, List.of(asked))).as("it is to be waited for").isFalse();
    ServerWaiting.giveUp(group);
  }

  /** BAR-50: the application's connection leads there whatever discovery says. */
  @Test
  void aReadWaitsOnAtTheServerThatItReadsFrom() {
    RegionStore store = listed();
    Server server = store.serverAt("late");
    CompletableFuture<Verdict> read = ServerWait.later(server, ONE, Duration.ofSeconds(60));
    until(() -> late.asked.get() > 0);
    named = List.of(there);
    until(() -> store.replicas().equals(List.of("there")));
    int asked = late.asked.get();
    until(() -> late.asked.get() > asked + 2);
    assertThat(read).isNotDone();
    late.answer = FakeShim.always(Visibility.VISIBLE);
    assertThat(read.join()).isEqualTo(Verdict.VISIBLE);
  }

  /** BAR-52: it had not opened a connection, and a barrier waited to know its server. */
  @Test
  void aClientThatIsGoneIsWaitedForNoMore() {
    RegionStore store = FakeShim.store("s", there);
    CompletableFuture<BarrierResult> waiting = waitingForAClient(store);
    until(() -> {
      System.gc();
      return waiting.isDone();
    });
    assertThat(ended(waiting).complete()).isTrue();
  }

  private static CompletableFuture<BarrierResult> waitingForAClient(RegionStore store) {
    Object client = new Object();
    store.expectServer(PLAIN, "a pool that is not opened", client, it -> List.of());
    CompletableFuture<BarrierResult> waiting = Form.BLOCKING.start(PATIENT);
    until(() -> store.parked() == 1);
    assertThat(Stream.of(client)).isNotEmpty(); // it lives until now
    return waiting;
  }

  /** BAR-40: barriers that went on elsewhere did not wait there in vain, and nobody asks on for them. */
  @Test
  void aServerThatLeftCountsForNoRowOfTimeouts() {
    Lineage position = Lineage.of(WriteId.position("s", "e1", 1));
    RegionStore store = listed();
    BarrierOptions options = PATIENT.lineage(position).timeout(Duration.ofSeconds(4));
    CompletableFuture<BarrierResult> waiting = Form.BLOCKING.start(options);
    ServerEngine server = store.serverAt("late");
    until(() -> store.parked() == 1);
    named = List.of(there);
    assertThat(waiting.join().satisfied()).isTrue();
    until(() -> server.live() == 0);
    assertThat(server.probe("e1")).isNull();
  }
}
