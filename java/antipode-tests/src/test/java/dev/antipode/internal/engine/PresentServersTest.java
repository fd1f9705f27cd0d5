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
import dev.antipode.StoreResult;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** A pass speaks of the servers that are known when it is given: they may change while a barrier waits (BAR-65). */
@ExtendWith(AntipodeIsolated.class)
class PresentServersTest {
  private static final Lineage ONE = Lineage.of(new WriteId("s", "k", new Ordered("", 1)));
  private static final StoreOptions PLAIN = StoreOptions.named("s");
  private static final BarrierOptions PATIENT = BarrierOptions.defaults()
      .lineage(ONE).timeout(Duration.ofSeconds(60)).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);

  /** In which form a barrier waits. */
  enum Form {
    BLOCKING {
      @Override
      CompletableFuture<BarrierResult> start(BarrierOptions options) {
        return Replica.waiting(options);
      }
    },
    FUTURE {
      @Override
      CompletableFuture<BarrierResult> start(BarrierOptions options) {
        return Antipode.barrierAsync(options);
      }
    },
    FUTURE_OF_THE_ENGINES_THREAD {
      @Override
      CompletableFuture<BarrierResult> start(BarrierOptions options) {
        Executor here = Runnable::run;
        return Antipode.barrierAsync(options.executor(here));
      }
    };

    abstract CompletableFuture<BarrierResult> start(BarrierOptions options);
  }

  private final Fake late = new Fake("late", FakeShim.always(Visibility.NOT_YET));
  private final Fake joined = new Fake("joined", FakeShim.always(Visibility.NOT_YET));
  private final AtomicReference<List<Fake>> named = new AtomicReference<>(List.of(late));
  private RegionStore store;

  @AfterEach
  void atLeisure() {
    Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
  }

  @BeforeEach
  void register() {
    Antipode.configure(Settings.defaults().poll(Duration.ofMillis(5)));
    store = FakeShim.store(FakeShim::new, PLAIN);
  }

  private static List<String> judged(BarrierResult result) {
    return result.store("s").servers().stream()
        .filter(server -> !server.leftOut())
        .map(ServerResult::address)
        .toList();
  }

  private CompletableFuture<BarrierResult> parked(Form form, BarrierOptions options) {
    CompletableFuture<BarrierResult> waiting = form.start(options);
    until(() -> store.parked() == 1);
    return waiting;
  }

  /** BAR-65: however it came to be known. */
  @ParameterizedTest
  @EnumSource
  void aServerThatJoinsWhileABarrierWaitsIsWaitedFor(Form form) {
    store.useServer(PLAIN, late);
    CompletableFuture<BarrierResult> waiting = parked(form, PATIENT);
    store.useServer(PLAIN, joined);
    long began = Ticks.now();
    late.answer = FakeShim.always(Visibility.VISIBLE);
    until(() -> joined.asked.get() >= 2 || waiting.isDone());
    assertThat(waiting).isNotDone();
    long waited = Ticks.now() - began;
    joined.answer = FakeShim.always(Visibility.VISIBLE);
    BarrierResult result = waiting.join();
    assertThat(result.complete()).isTrue();
    assertThat(judged(result)).containsExactly("late", "joined");
    assertThat(result.waited().toNanos()).isGreaterThanOrEqualTo(waited);
    assertThat(store.parked()).isZero();
  }

  /** BAR-65: under the barrier's own deadline. */
  @ParameterizedTest
  @CsvSource({"REGION, BLOCKING", "REPLICA, BLOCKING", "REGION, FUTURE", "REPLICA, FUTURE"})
  void aServerThatJoinsIsNoPassBeforeItShowsTheWrite(Reach reach, Form form) {
    store.useServer(PLAIN, late);
    CompletableFuture<BarrierResult> waiting = parked(form, PATIENT.timeout(Duration.ofSeconds(1)).reach(reach));
    store.useServer(PLAIN, joined);
    late.answer = FakeShim.always(Visibility.VISIBLE);
    BarrierResult result = waiting.join();
    assertThat(result.satisfied()).isFalse();
    assertThat(result.store("s").verdict()).isEqualTo(Verdict.TIMED_OUT);
    assertThat(result.store("s").reason()).contains("joined");
  }

  /** BAR-65: nothing says so but the client itself, which is looked at again behind the wait. */
  @ParameterizedTest
  @EnumSource
  void aClientThatIsLedElsewhereWhileABarrierWaits(Form form) {
    AtomicReference<Fake> client = new AtomicReference<>(late);
    store.expectServer(PLAIN, "a client", client, it -> List.of(client.get()), it -> client.get());
    assertThat(Antipode.barrier(PATIENT.timeout(Duration.ofMillis(500))).satisfied()).isFalse();
    CompletableFuture<BarrierResult> waiting = parked(form, PATIENT);
    client.set(joined);
    late.answer = FakeShim.always(Visibility.VISIBLE);
    until(() -> joined.asked.get() >= 2 || waiting.isDone());
    assertThat(waiting).isNotDone();
    joined.answer = FakeShim.always(Visibility.VISIBLE);
    BarrierResult result = waiting.join();
    assertThat(result.satisfied()).isTrue();
    assertThat(judged(result)).containsExactly("joined");
    assertThat(result.store("s").leftOut()).as("BAR-54").containsExactly("late");
    assertThat(result.complete()).isFalse();
  }

  /** BAR-65, BAR-54: though it had shown the write. */
  @Test
  void aServerThatLeftWhileAnotherOneWasWaitedForIsNamed() {
    Fake there = new Fake("there", FakeShim.always(Visibility.VISIBLE));
    FakeShim.store(FakeShim::new, PLAIN.replicas(named::get));
    list(List.of(there, late));
    CompletableFuture<BarrierResult> waiting = parked(Form.BLOCKING, PATIENT);
    until(() -> there.asked.get() > 0);
    list(List.of(late));
    late.answer = FakeShim.always(Visibility.VISIBLE);
    BarrierResult result = waiting.join();
    assertThat(result.satisfied()).isTrue();
    assertThat(result.complete()).isFalse();
    assertThat(judged(result)).containsExactly("late");
    assertThat(result.store("s").leftOut()).containsExactly("there");
  }

  /** BAR-65: the barrier goes on, as what is unproven ends it before its time. */
  @Test
  void whereTheServerLeftThatCannotShowItTheOthersDecide() {
    FakeShim.store(FakeShim::new, PLAIN.replicas(named::get));
    list(List.of(joined, late));
    CompletableFuture<BarrierResult> waiting = parked(Form.BLOCKING, PATIENT);
    list(List.of(late));
    joined.answer = FakeShim.always(Visibility.unproven("it is another history"));
    late.answer = FakeShim.always(Visibility.VISIBLE);
    BarrierResult result = waiting.join();
    assertThat(result.satisfied()).isTrue();
    assertThat(judged(result)).containsExactly("late");
  }

  private void list(List<Fake> servers) {
    named.set(servers);
    Discovery.hurry(0, TimeUnit.MINUTES.toNanos(1));
    until(() -> store.servers(false).size() == servers.size());
    atLeisure();
  }

  /** BAR-65: each one shows the write, and by then there is another. */
  @ParameterizedTest
  @EnumSource
  void serversThatChangeUntilTheDeadlineAreNoPass(Form form) {
    AtomicInteger count = new AtomicInteger();
    store.useServer(PLAIN, joining(count));
    long began = Ticks.now();
    BarrierResult result = form.start(PATIENT.timeout(Duration.ofMillis(500))).join();
    assertThat(result.satisfied()).isFalse();
    assertThat(result.store("s").verdict()).isEqualTo(Verdict.TIMED_OUT);
    assertThat(Duration.ofNanos(Ticks.now() - began)).isBetween(Duration.ofMillis(490), Duration.ofSeconds(30));
    assertThat(count.get()).isGreaterThan(2);
  }

  private Fake joining(AtomicInteger count) {
    return new Fake("server" + count.getAndIncrement(), (ids, server) -> {
      store.useServer(PLAIN, joining(count));
      return Collections.nCopies(ids.size(), Visibility.VISIBLE);
    });
  }

  /** BAR-65, BAR-59: in a sentence; where only the client is known, as BAR-52 says. */
  @ParameterizedTest
  @CsvSource({"true", "false"})
  void aServerThatJoinsAsTheTimeIsOverIsNamed(boolean isKnown) {
    store.useServer(PLAIN, late);
    Plan plan = Planner.plan(null, PATIENT.timeout(Duration.ofSeconds(2)));
    BarrierWaits waits = new BarrierWaits(plan);
    WaitGroup group = waits.begin(() -> { });
    assertThat(ServerWaiting.park(group, plan.asked())).isTrue();
    late.answer = FakeShim.always(Visibility.VISIBLE);
    until(group.needs.get(0)::isDone);
    until(() -> ServerWaiting.patience(group) == 0);
    ServerWaiting.giveUp(group);
    if (isKnown) {
      store.useServer(PLAIN, joined);
    } else {
      store.expectServer(PLAIN, "a pool that is not opened", this, it -> List.of());
    }
    assertThat(waits.take(group)).isTrue();
    StoreResult found = Judgement.judge(waits.plan(), waits.needs(), 0, false).get("s");
    assertThat(found.reason()).contains("changed until the deadline");
    assertThat(found.kind()).isEqualTo(isKnown ? null : UnprovenKind.NOT_OPENED);
    assertThat(found.verdict()).isEqualTo(isKnown ? Verdict.TIMED_OUT : Verdict.UNPROVEN);
  }

  /** BAR-65, BAR-29: one that joined during the question is not passed over. */
  @Test
  void aLookSpeaksOfTheServersOfItsEnd() {
    store.useServer(PLAIN, new Fake("first", (ids, server) -> {
      store.useServer(PLAIN, joined);
      return Collections.nCopies(ids.size(), Visibility.VISIBLE);
    }));
    BarrierResult result = Antipode.barrier(PATIENT.timeout(Duration.ZERO));
    assertThat(result.satisfied()).isFalse();
    assertThat(result.store("s").verdict()).isEqualTo(Verdict.NOT_YET);
  }

  /** BAR-65: a wait to know the servers changes their set, and is no reason for another question. */
  @Test
  void nothingIsAskedAgainWhereTheSameServersAreNamed() {
    Object client = new Object();
    joined.answer = FakeShim.always(Visibility.VISIBLE);
    store.expectServer(PLAIN, "a client", client, it -> List.of(joined));
    assertThat(Antipode.barrier(PATIENT).complete()).isTrue();
    assertThat(joined.asked).hasValueLessThan(3); // the thread may have begun before it was told of the need
    assertThat(client).isNotNull();
  }

  /** BAR-65, BAR-52: one entry found the client's servers, the other one's time was over before. */
  @Test
  void aWriteThatWasNotAskedForIsNotVisible() {
    List<WriteId> ids = List.of(new WriteId("s", "k", new Ordered("", 1)), new WriteId("s", "l", new Ordered("", 1)));
    store.useServer(PLAIN, late);
    ServerEngine known = store.servers(false).get(0);
    store.expectServer(PLAIN, "a pool that is not opened", this, it -> List.of());
    ServerEngine unknown = store.servers(false).stream().filter(Discovery.class::isInstance).findFirst().orElseThrow();
    WaitGroup group = new WaitGroup(1, () -> { });
    List<PendingWait> needs = List.of(new PendingWait(ids.get(0), unknown, group), new PendingWait(ids.get(0), known, group));
    needs.get(0).divided = true;
    needs.forEach(need -> need.answer = Visibility.VISIBLE);
    Plan plan = Planner.plan(null, PATIENT);
    StoreRequest asked = new StoreRequest(plan.asked().get(0).store(), ids, List.of(unknown));
    List<PendingWait> more = new ArrayList<>(needs);
    more.add(new PendingWait(ids.get(1), unknown, group));
    for (List<PendingWait> each : List.of(needs, more)) {
      assertThat(Judgement.judgeStore(asked, each, 0, false).verdict()).isEqualTo(Verdict.TIMED_OUT);
    }
  }

  /** BAR-32, BAR-65: also in a later wait, which then gives its place up. */
  @Test
  void aFutureIsCancelledInItsSecondWait() {
    store.useServer(PLAIN, late);
    CompletableFuture<BarrierResult> waiting = parked(Form.FUTURE, PATIENT);
    store.useServer(PLAIN, joined);
    late.answer = FakeShim.always(Visibility.VISIBLE);
    until(() -> joined.asked.get() >= 2);
    waiting.cancel(false);
    until(() -> store.parked() == 0);
    assertThat(waiting).isCancelled();
  }
}
