package dev.antipode.internal.engine;

import static dev.antipode.internal.engine.EngineTest.at;
import static dev.antipode.internal.engine.EngineTest.object;
import static dev.antipode.internal.engine.EngineTest.proceeding;
import static dev.antipode.internal.engine.EngineTest.server;
import static dev.antipode.internal.engine.EngineTest.until;
import static dev.antipode.internal.engine.Replica.configure;
import static dev.antipode.internal.engine.Replica.waiting;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.antipode.Antipode;
import dev.antipode.BarrierIncompleteException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.EngineTest.LogShim;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A pass is a picture of one moment: what a server showed, and may have lost while others were waited for (BAR-63). */
@ExtendWith(AntipodeIsolated.class)
class MomentTest {
  private static final Duration MINUTE = Duration.ofMinutes(1);
  private static final Duration LIFE = Duration.ofHours(1);
  private static final Lineage POSITION = at(5);

  private Replica there;
  private Replica late;

  @AfterEach
  void atLeisure() {
    Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
  }

  /** One server that has the write, and one that has not. */
  private Lineage register(boolean hasPositions, Duration slow) {
    there = new Replica("there", 5, hasPositions, slow);
    late = new Replica("late", 0, hasPositions, slow);
    Replica.register(hasPositions, there, late);
    return hasPositions ? POSITION : object("log", "k");
  }

  private Lineage register(boolean hasPositions) {
    return register(hasPositions, Duration.ZERO);
  }

  /** Blocks until one server has shown the write, and the other was asked behind that. */
  private void untilLateAloneIsWaitedFor() {
    until(() -> there.server instanceof ServerEngine engine && engine.live() == 0);
    late.untilAsked(late.askedAt.size() + 2); // one may have been under way
  }

  private static BarrierResult barrier(Lineage lineage, Duration timeout) {
    return Antipode.barrier(proceeding(lineage, timeout));
  }

  /** BAR-63: the server has shown it, is pointed elsewhere, and says so by its push. */
  @Test
  void whatWasPushedAwayWhileAnotherServerWasWaitedForIsNoPass() {
    configure(LIFE);
    register(true);
    CompletableFuture<BarrierResult> waiting = waiting(proceeding(POSITION, Duration.ofSeconds(2)));
    untilLateAloneIsWaitedFor();
    there.applied = 0;
    there.server.reset();
    late.applied = 5;
    assertThat(waiting.join().satisfied()).isFalse();
    there.applied = 5;
    assertThat(barrier(POSITION, MINUTE).satisfied()).isTrue();
  }

  /** BAR-33, BAR-63: the reply to another barrier's question shows that the server is another one. */
  @ParameterizedTest
  @ValueSource(strings = {"i-there", "another"})
  void whatAReplyToOthersShowsToBeGoneIsNoPass(String instance) {
    configure(LIFE);
    register(true);
    CompletableFuture<BarrierResult> waiting = waiting(proceeding(POSITION, Duration.ofSeconds(3)));
    untilLateAloneIsWaitedFor();
    there.applied = 2; // back, or those of another instance
    there.instance = instance;
    barrier(at(7), Duration.ofMillis(200));
    late.applied = 5;
    assertThat(waiting.join().satisfied()).isFalse();
  }

  /** BAR-63: nobody pushes; the age of the proof is what has it asked for again. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatWasLostInSilenceIsNoPassOnceItsProofIsOld(boolean hasPositions) {
    configure(Duration.ofMillis(50));
    Lineage wanted = register(hasPositions);
    CompletableFuture<BarrierResult> waiting = waiting(proceeding(wanted, Duration.ofSeconds(3)));
    untilLateAloneIsWaitedFor();
    there.applied = 0;
    untilOld(there, 100);
    late.applied = 5;
    BarrierResult result = waiting.join();
    assertThat(result.satisfied()).isFalse();
    assertThat(result.store("log").servers())
        .anyMatch(each -> each.address().equals("there") && each.verdict() == Verdict.TIMED_OUT);
    there.applied = 5;
    assertThat(barrier(wanted, MINUTE).satisfied()).isTrue();
  }

  /** Blocks until the last question to a server was asked so many milliseconds ago. */
  private static void untilOld(Replica replica, long millis) {
    until(() -> Ticks.now() - last(replica.askedAt, 1) > TimeUnit.MILLISECONDS.toNanos(millis));
  }

  /** BAR-63: ages count from the moment, else every proof would be too old when it arrives. */
  @ParameterizedTest
  @CsvSource({"0, true", "0, false", "10, true", "10, false"})
  void oneMoreRoundIsEnoughHoweverSlowTheLink(int ttl, boolean hasPositions) {
    configure(Duration.ofMillis(ttl));
    Lineage wanted = register(hasPositions, Duration.ofMillis(100));
    CompletableFuture<BarrierResult> waiting = waiting(proceeding(wanted, Duration.ofSeconds(30)));
    late.untilAsked(2);
    late.applied = 5;
    long shown = Ticks.now();
    assertThat(waiting.join().satisfied()).isTrue();
    assertThat(there.askedAt.stream().filter(asked -> asked > shown))
        .as("one under way, one more, and the engine's own")
        .hasSizeLessThanOrEqualTo(3);
  }

  /** BAR-63: a question that was asked only for its proof's age finds the write gone: then it is another moment. */
  @ParameterizedTest
  @CsvSource({"true, false", "true, true", "false, false"})
  void whatWasFoundGoneMeanwhileHasAnotherMoment(boolean hasPositions, boolean isLoading) {
    configure(Duration.ZERO);
    Lineage wanted = register(hasPositions);
    FakeShim.Answer own = there.answer;
    CompletableFuture<BarrierResult> waiting = waiting(proceeding(wanted, Duration.ofSeconds(3)));
    untilLateAloneIsWaitedFor();
    there.applied = 0;
    if (isLoading) { // then nothing says that its data are others
      there.answer = FakeShim.always(Visibility.notYet("it is loading"));
    }
    late.applied = 5;
    int asked = there.asked.get();
    until(() -> there.asked.get() > asked + 3); // once more for its age, and it says that it is not there
    late.applied = 0;
    there.applied = 5;
    there.answer = own;
    assertThat(waiting.join().satisfied()).isFalse();
  }

  /** BAR-63: its own answer is the moment, and its first reply is the first word of its data. */
  @Test
  void aServerAloneNeedsToShowItOnce() {
    configure(Duration.ZERO);
    there = new Replica("alone", 5);
    Replica.register(true, there);
    there.answer = (ids, server) -> {
      List<Visibility> once = there.judge(ids, server);
      there.applied = 0;
      return once;
    };
    assertThat(barrier(POSITION, Duration.ofSeconds(2)).satisfied()).isTrue();
  }

  /** BAR-34, BAR-63: what was long on its way may be gone when it arrives. */
  @Test
  void anAnswerIsAsOldAsItsQuestion() {
    configure(Duration.ofMillis(500));
    there = new Replica("slow", 5, true, Duration.ofMillis(300));
    Replica.register(true, there);
    assertThat(barrier(POSITION, MINUTE).satisfied()).isTrue();
    assertHeldFrom(there.askedAt.get(0));
  }

  private static void assertHeldFrom(long asked) {
    assertThat(server().holds("e1", 5, asked + TimeUnit.MILLISECONDS.toNanos(490))).isTrue();
    assertThat(server().holds("e1", 5, asked + TimeUnit.MILLISECONDS.toNanos(520))).isFalse();
  }

  /** A store whose own wait asks twice, and says so. */
  private static final class TwiceShim extends LogShim {
    @Override
    public Capabilities capabilities() {
      return super.capabilities().blockingWait(true);
    }

    @Override
    public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
      Thread.sleep(300);
      server.beginQuestion();
      return visible(ids, server);
    }
  }

  /** BAR-34. */
  @Test
  void aWaitThatAsksSeveralTimesIsAsOldAsItsLastQuestion() {
    configure(Duration.ofMillis(500));
    there = new Replica("twice", 5);
    FakeShim.store(TwiceShim::new, StoreOptions.named("log").replicas(there));
    assertThat(barrier(POSITION, MINUTE).satisfied()).isTrue();
    assertThat(server().holds("e1", 5, there.askedAt.get(0) + TimeUnit.MILLISECONDS.toNanos(490))).isTrue();
  }

  /** BAR-64: each server shows it once more behind the last of them. */
  @Test
  void completeAndRegionWantsOneInstantWithinTheCall() {
    configure(LIFE);
    register(true);
    CompletableFuture<BarrierResult> waiting = waiting(proceeding(POSITION, MINUTE).requireComplete(true));
    untilLateAloneIsWaitedFor();
    late.applied = 5;
    assertThat(waiting.join().satisfied()).isTrue();
    assertThat(late.shown.get()).as("once more, behind the answer that was the last").isGreaterThanOrEqualTo(2);
    assertThat(last(there.askedAt, 1)).isGreaterThan(last(late.askedAt, 2));
    int both = there.askedAt.size() + late.askedAt.size();
    assertThat(barrier(POSITION, MINUTE).satisfied()).isTrue();
    assertThat(there.askedAt.size() + late.askedAt.size()).as("without it, the proofs are fresh enough").isEqualTo(both);
    int once = there.askedAt.size();
    int again = late.askedAt.size();
    assertThat(Antipode.barrierAsync(proceeding(POSITION, MINUTE).requireComplete(true)).join().satisfied()).isTrue();
    assertThat(there.askedAt.size()).isGreaterThan(once);
    assertThat(late.askedAt.size()).isGreaterThan(again);
  }

  private static long last(List<Long> times, int back) {
    return times.get(times.size() - back);
  }

  /** BAR-29, BAR-63. */
  @Test
  void aLookDoesTheSame() {
    configure(Duration.ZERO);
    register(true);
    late.applied = 5;
    long before = ServerWaiting.lookFor(TimeUnit.SECONDS.toNanos(20));
    try {
      assertThat(barrier(POSITION, Duration.ZERO).satisfied()).isTrue();
      there.applied = 0;
      assertThat(barrier(POSITION, Duration.ZERO).satisfied()).isFalse();
    } finally {
      ServerWaiting.lookFor(before);
    }
  }

  /** BAR-32, BAR-63. */
  @Test
  void futuresAreReleasedByTheSameRule() {
    configure(LIFE);
    register(true);
    List<CompletableFuture<BarrierResult>> waiting = IntStream.range(0, 20)
        .mapToObj(number -> Antipode.barrierAsync(proceeding(POSITION, Duration.ofSeconds(2))))
        .toList();
    untilLateAloneIsWaitedFor();
    there.applied = 0;
    there.server.reset();
    late.applied = 5;
    assertThat(waiting).noneMatch(each -> each.join().satisfied());
    assertThat(EngineTest.store().parked()).isZero();
  }

  /** BAR-55, BAR-63: a connection lives for several questions, else each would be of another generation. */
  @Test
  void serversStandTogetherHoweverOftenTheyAreConnectedAnew() {
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ZERO).reconnect(Duration.ofMillis(100)));
    Lineage wanted = register(true, Duration.ofMillis(150));
    late.applied = 5;
    assertThat(Antipode.barrier(proceeding(wanted, Duration.ofSeconds(20)).requireComplete(true)).satisfied()).isTrue();
  }

  /** BAR-63: a question that does not speak of an object does not say that it is gone, so the moment stays. */
  @Test
  void objectsThatAreAskedForInTurnsPass() {
    configure(Duration.ZERO);
    FakeShim.store("log", new Fake("paced", FakeShim.always(Visibility.VISIBLE)));
    List<WriteId> objects = IntStream.range(0, 450) // more than one question names
        .mapToObj(number -> new WriteId("log", "k" + number, new Ordered("", 1)))
        .toList();
    assertThat(barrier(Lineage.of(objects.toArray(WriteId[]::new)), Duration.ofSeconds(10)).satisfied()).isTrue();
  }

  /** BAR-33, BAR-63: the server is loading other data, and has shown the write before. */
  @Test
  void anAnswerThatProvesNoPositionIsNoneOfAnEarlierOne() {
    configure(Duration.ZERO);
    register(true);
    CompletableFuture<BarrierResult> waiting = waiting(proceeding(POSITION, Duration.ofSeconds(1)));
    untilLateAloneIsWaitedFor();
    FakeShim.Answer own = there.answer;
    there.answer = FakeShim.always(Visibility.notYet("it is loading"));
    late.applied = 5;
    assertThat(waiting.join().satisfied()).isFalse();
    there.answer = own;
    assertThat(barrier(POSITION, MINUTE).satisfied()).isTrue();
  }

  /** BAR-35, BAR-36, BAR-65: one joined when the other one had been asked. */
  @Test
  void theProofThatIsKeptIsOfTheServersOfTheEnd() {
    configure(LIFE);
    there = new Replica("there", 5);
    late = new Replica("late", 0);
    List<Replica> found = new CopyOnWriteArrayList<>(List.of(there));
    there.answer = (ids, server) -> {
      if (found.size() == 1) {
        found.add(late);
        Discovery.hurry(0, TimeUnit.MINUTES.toNanos(1));
        until(() -> EngineTest.store().servers(false).size() == 2);
        atLeisure();
      }
      return there.judge(ids, server);
    };
    FakeShim.store(LogShim::new, StoreOptions.named("log").replicas(() -> new ArrayList<>(found)));
    try (LineageScope scope = Antipode.scope(POSITION)) {
      assertThat(scope).isNotNull();
      CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(proceeding(null, MINUTE));
      until(() -> late.asked.get() >= 2 || waiting.isDone());
      assertThat(waiting).isNotDone();
      late.applied = 5;
      assertThat(waiting.join().satisfied()).isTrue();
      assertThat(FreePath.pass(BarrierOptions.defaults())).isNotNull();
      late.server.reset();
      assertThat(FreePath.pass(BarrierOptions.defaults())).isNull();
    }
  }

  /** Positions, with a push channel that stays silent. */
  private static final class PushShim extends LogShim {
    @Override
    public Capabilities capabilities() {
      return super.capabilities().push(true);
    }

    @Override
    public Watch watch(Server server) {
      return () -> { };
    }
  }

  /** BAR-39, BAR-64: what would only have had to be shown once more is no late write. */
  @Test
  void aPlaceThatIsRefusedSaysSoAndNothingElse() {
    Antipode.configure(Settings.defaults().poll(Duration.ofMillis(5)).freePathTtl(LIFE).maxWaiters(1));
    WriteId elsewhere = WriteId.position("other", "e1", 5);
    StoreOptions other = StoreOptions.named("other").replicas(List.of(new Replica("one", 5), new Replica("two", 5)));
    FakeShim.store(LogShim::new, other);
    register(true);
    assertThat(barrier(Lineage.of(elsewhere), MINUTE).satisfied()).isTrue();
    CompletableFuture<BarrierResult> waiting = waiting(proceeding(POSITION, MINUTE));
    until(() -> EngineTest.store().parked() == 1);
    BarrierOptions both = proceeding(Lineage.of(elsewhere, WriteId.position("log", "e1", 5)), Duration.ofSeconds(30))
        .requireComplete(true);
    BarrierResult refused =
        catchThrowableOfType(BarrierIncompleteException.class, () -> Antipode.barrier(both)).result();
    assertThat(refused.store("log").reason()).contains("overloaded");
    assertThat(refused.stores().toString()).doesNotContain("gone again");
    late.applied = 5;
    assertThat(waiting.join().satisfied()).isTrue();
  }

  /** BAR-38: it answers without a position, as one does that loads its data. */
  @Test
  void aServerThatProvesNothingIsAskedForASignOfLifeInItsTime() {
    configure(Duration.ofMillis(250));
    there = new Replica("there", 5);
    FakeShim.store(PushShim::new, StoreOptions.named("log").replicas(there));
    assertThat(barrier(POSITION, MINUTE).satisfied()).isTrue();
    there.answer = FakeShim.always(Visibility.notYet("it is loading"));
    int before = there.asked.get();
    until(() -> there.asked.get() > before);
    int asked = there.asked.get();
    long since = Ticks.now();
    until(() -> Ticks.now() - since > TimeUnit.SECONDS.toNanos(1));
    assertThat((there.asked.get() - asked) / ((Ticks.now() - since) / 1e9)).as("8 a second are wanted").isLessThan(100);
  }

  /** BAR-34: without a free path nobody needs a sign of life. */
  @Test
  void aChannelWithoutAFreePathIsNotAskedForASignOfLife() {
    configure(Duration.ZERO);
    there = new Replica("pushes", 5);
    FakeShim.store(PushShim::new, StoreOptions.named("log").replicas(there));
    assertThat(barrier(POSITION, MINUTE).satisfied()).isTrue();
    long since = Ticks.now();
    until(() -> Ticks.now() - since > TimeUnit.MILLISECONDS.toNanos(500));
    assertThat(there.askedAt.size()).isLessThanOrEqualTo(4);
  }
}
