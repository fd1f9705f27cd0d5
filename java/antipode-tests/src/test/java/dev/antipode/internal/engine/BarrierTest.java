package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierIncompleteException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.ConfigurationException;
import dev.antipode.Delivery;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.OnReplicaOut;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.Reading;
import dev.antipode.RedeliverException;
import dev.antipode.ScopeKind;
import dev.antipode.ServerResult;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.UnknownStoreException;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.internal.store.Registry;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.BarrierAssertions;
import dev.antipode.testing.CapturedLogs;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** {@code barrier()}: what it proves, refuses and throws (chapter BAR). */
@ExtendWith(AntipodeIsolated.class)
class BarrierTest {
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final BarrierOptions PATIENT = BarrierOptions.defaults().timeout(LONG);
  private static final BarrierOptions PROCEEDING =
      PATIENT.onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);

  private static MemoryStore posts(Duration lag) {
    return MemoryStore.named("blog-posts").lag(lag);
  }

  private static BarrierOptions within(long millis) {
    return PROCEEDING.timeout(Duration.ofMillis(millis));
  }

  private static Lineage object(String store) {
    return Lineage.of(new WriteId(store, "k", new Ordered("", 1)));
  }

  private static Lineage position(String store) {
    return Lineage.of(WriteId.position(store, "e", 1));
  }

  private static Fake server(String name, Visibility answer) {
    return new Fake(name, FakeShim.always(answer));
  }

  /** BAR-1, BAR-10, BAR-14, BAR-23. */
  @Test
  void itWaitsUntilTheWriteIsVisibleInTheRegion() throws InterruptedException {
    MemoryStore store = posts(Duration.ZERO);
    store.freeze("b");
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      writer.set("post:42", "hi");
      assertThat(reader.get("post:42")).isNull();
      CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(PATIENT);
      TimeUnit.MILLISECONDS.sleep(20);
      assertThat(waiting).as("the link between the regions is cut").isNotDone();
      store.heal("b");
      BarrierResult result = waiting.join();
      assertThat(reader.get("post:42")).isEqualTo("hi");
      assertThat(result.satisfied()).isTrue();
      assertThat(result.complete()).isTrue();
      assertThat(result.waited()).isBetween(Duration.ofMillis(20), LONG);
      assertThat(result.store("blog-posts").reason()).contains("2 of 2 replicas");
      assertThat(result.store("blog-posts").servers()).extracting(ServerResult::address)
          .containsExactly("memory://blog-posts/a", "memory://blog-posts/b");
      assertThat(result.toString()).contains("satisfied in").contains("blog-posts visible");
      assertThat(scope.lineage().ofStore("blog-posts")).as("entries stay (SCOPE-23)").hasSize(1);
      assertThatThrownBy(() -> result.store("user-acl")).isInstanceOf(IllegalArgumentException.class);
    }
  }

  /** BAR-21, BAR-22, BAR-25: with two replicas of different lag the pass speaks of both. */
  @Test
  void reachReplicaSpeaksOfTheWrappedClientsAlone() {
    MemoryStore store = MemoryStore.named("p").regions("a", "b1", "b2");
    MemoryClient writer = store.client("a");
    store.register("b1", "b2");
    store.freeze("b2");
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      assertThat(scope.lineage().isEmpty()).isFalse();
      assertThat(Antipode.barrier(PATIENT.reach(Reach.REPLICA)).satisfied()).isTrue();
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.timeout(Duration.ofMillis(100))))
          .isInstanceOf(BarrierTimeoutException.class)
          .hasMessageContaining("memory://p/b2");
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.reach(Reach.SESSION)))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("waitOnRead");
    }
  }

  /** BAR-28, BAR-43. */
  @Test
  void theDeadlineHoldsAndTheExceptionSaysWhereTheReplicaIs() {
    Antipode.configure(Settings.defaults().region("b"));
    MemoryStore store = posts(Duration.ZERO);
    store.client("b");
    store.freeze("b");
    try (LineageScope scope = Antipode.scope()) {
      store.client("a").set("k", "v");
      assertThatThrownBy(() -> Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofMillis(300))))
          .isInstanceOfSatisfying(BarrierTimeoutException.class, error -> {
            assertThat(error.result().store("blog-posts").verdict()).isEqualTo(Verdict.TIMED_OUT);
            assertThat(error.result().waited()).isGreaterThan(Duration.ofMillis(290));
          })
          .hasMessageMatching("(?s)blog-posts is not visible in region b after \\d+ ms: replica memory://.*")
          .hasMessageContaining("memory://blog-posts/a is there")
          .hasMessageContaining("Antipode.readOrFallback()");
      scope.deadline(System.nanoTime() + Duration.ofMillis(50).toNanos()); // the request's own
      assertThat(Antipode.barrier(PROCEEDING).waited()).isLessThan(Duration.ofSeconds(10));
    }
  }

  /** BAR-29. */
  @Test
  void aTimeoutOfZeroLooksOnceAndEndsWithTheServersAnswer() {
    long before = ServerWaiting.lookFor(LONG.toNanos());
    try {
      Fake fake = server("s1", Visibility.NOT_YET);
      FakeShim.store("s", fake);
      for (Lineage lineage : List.of(object("s"), position("s"))) {
        int asked = fake.asked.get();
        BarrierResult result = Antipode.barrier(within(0).lineage(lineage));
        assertThat(result.store("s").verdict()).isEqualTo(Verdict.NOT_YET);
        assertThat(result.waited()).isLessThan(Duration.ofSeconds(10));
        assertThat(fake.asked.get()).as("it looks, and does not guess").isGreaterThan(asked);
      }
    } finally {
      ServerWaiting.lookFor(before);
    }
  }

  /** BAR-5, BAR-8, BAR-45. */
  @Test
  void mistakesOfTheProgrammerThrowAtOnce() {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(scope).isNotNull();
      assertThatThrownBy(Antipode::barrier).hasMessageContaining("registered no store");
    }
    posts(Duration.ZERO).client("a");
    assertThatThrownBy(Antipode::barrier)
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("outside any scope");
    try (LineageScope scope = Antipode.scope()) {
      assertThat(scope).isNotNull();
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.stores("blog-post")))
          .isInstanceOf(UnknownStoreException.class)
          .hasMessageContaining("Did you mean \"blog-posts\"");
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.onTimeout(Policy.REDELIVER)))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("REDELIVER");
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.onVacuous(Policy.REDELIVER)))
          .isInstanceOf(ConfigurationException.class);
    }
    Delivery stuck = new Delivery(false, "acknowledged automatically");
    try (LineageScope message = LineageScope.open(Lineage.EMPTY, ScopeKind.MESSAGE, stuck)) {
      assertThat(message).isNotNull();
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.onUnproven(Policy.REDELIVER)))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("acknowledged automatically");
    }
  }

  /** BAR-45. */
  @Test
  void aMessageGoesBackWithTheFailureAsItsCause() {
    FakeShim.store("s", server("s1", Visibility.NOT_YET));
    Delivery delivery = new Delivery(true, "");
    try (LineageScope message = LineageScope.open(object("s"), ScopeKind.MESSAGE, delivery)) {
      assertThat(message).isNotNull();
      assertThatThrownBy(() -> Antipode.barrier(within(50).onTimeout(Policy.REDELIVER)))
          .isInstanceOf(RedeliverException.class)
          .hasCauseInstanceOf(BarrierTimeoutException.class);
    }
  }

  /** BAR-3, BAR-17, BAR-20. */
  @Test
  void storesElsewhereAreCarriedOnAndTold() {
    posts(Duration.ZERO).client("a");
    try (CapturedLogs logs = new CapturedLogs(); LineageScope scope = Antipode.scope(position("user-acl"))) {
      BarrierResult result = null;
      for (int number = 0; number < 2; number++) {
        result = Antipode.barrier();
      }
      assertThat(result.satisfied()).isTrue();
      assertThat(result.vacuous()).isTrue();
      assertThat(result.complete()).isFalse();
      assertThat(result.toString()).contains("user-acl elsewhere (not registered in this process)");
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.onVacuous(Policy.RAISE)))
          .isInstanceOf(BarrierIncompleteException.class);
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.requireComplete(true)))
          .isInstanceOf(BarrierIncompleteException.class);
      assertThat(logs.lines().stream().filter(line -> line.contains("judged nothing")))
          .isNotEmpty()
          .allMatch(line -> line.contains("user-acl") && line.contains("blog-posts"));
      assertThat(scope.lineage()).isEqualTo(position("user-acl"));
    }
  }

  /** BAR-13, BAR-30: at once, not at the deadline. */
  @Test
  void aStoreThatRefusesTheQuestionIsUnprovenWithItsWords() {
    FakeShim.store("s", new Fake("s1", (ids, asked) -> {
      throw new IllegalStateException("NOPERM this user has no permissions to run the 'info' command");
    }));
    BarrierResult result = Antipode.barrier(PROCEEDING.lineage(object("s")));
    assertThat(result.store("s").verdict()).isEqualTo(Verdict.UNPROVEN);
    assertThat(result.store("s").reason()).contains("NOPERM");
    assertThat(result.waited()).isLessThan(Duration.ofSeconds(10));
    FakeShim.store("nowhere");
    BarrierResult nobody = Antipode.barrier(PROCEEDING.lineage(object("nowhere")));
    assertThat(nobody.satisfied()).as("nobody can be asked, so nothing is proved").isFalse();
    assertThat(nobody.store("nowhere").reason()).isEqualTo("no server is registered");
  }

  /** BAR-26, BAR-27. */
  @Test
  void aReplicaThatIsDownIsLeftOutByNameUntilItAnswers() {
    Antipode.configure(Settings.defaults().replicaOutAfter(Duration.ofMillis(300)));
    Fake gone = new Fake("gone", FakeShim.DOWN);
    FakeShim.store("s", server("up", Visibility.VISIBLE), gone);
    BarrierOptions options = PROCEEDING.lineage(object("s"));
    BarrierResult result = Antipode.barrier(options);
    assertThat(result.satisfied()).isTrue();
    assertThat(result.complete()).isFalse();
    assertThat(result.store("s").leftOut()).containsExactly("gone");
    assertThat(result.explain()).contains("connection refused");
    assertThat(Antipode.barrier(options).waited()).as("known to be out").isLessThan(Duration.ofMillis(250));
    Antipode.configure(Settings.defaults().onReplicaOut(OnReplicaOut.FAIL));
    assertThat(Antipode.barrier(options).store("s").verdict()).isEqualTo(Verdict.UNPROVEN);
    Antipode.configure(Settings.defaults().onReplicaOut(OnReplicaOut.NAME));
    gone.answer = FakeShim.always(Visibility.NOT_YET);
    EngineTest.until(() -> !Antipode.barrier(within(100).lineage(object("s"))).satisfied());
    gone.answer = FakeShim.always(Visibility.VISIBLE);
    EngineTest.until(() -> Antipode.barrier(within(500).lineage(object("s"))).complete());
  }

  /** BAR-2. */
  @Test
  void severalStoresAreWaitedForTogetherUnderOneDeadline() {
    try (LineageScope scope = Antipode.scope()) {
      for (String name : List.of("one", "two", "three")) {
        MemoryStore store = MemoryStore.named(name).lag(Duration.ofMillis(400));
        store.client("b");
        store.client("a").set("k", "v");
      }
      BarrierResult result = Antipode.barrier(PATIENT);
      assertThat(result.satisfied()).isTrue();
      assertThat(result.waited()).as("in parallel").isLessThan(Duration.ofMillis(1000));
      assertThat(scope.lineage().stores()).hasSize(3);
    }
  }

  /** BAR-22. */
  @Test
  void whatListsTheReplicasIsAskedAndItsFailureIsTold() {
    Fake up = server("up", Visibility.VISIBLE);
    FakeShim.store(FakeShim::new, StoreOptions.named("s").replicas(() -> List.of(up)));
    BarrierResult result = Antipode.barrier(PATIENT.lineage(object("s")));
    assertThat(result.store("s").servers()).extracting(ServerResult::address).containsExactly("up");
    assertThatThrownBy(() -> FakeShim.store(FakeShim::new, StoreOptions.named("t").replicas(() -> {
      throw new IllegalStateException("no such service");
    }))).hasMessageContaining("no such service");
    assertThatThrownBy(() -> MemoryStore.named("s").client("a"))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("registered as fake already");
  }

  /** BAR-15, BAR-16, BAR-18. */
  @Test
  void incompleteLineagesAreSatisfiedWithoutBeingComplete() {
    posts(Duration.ZERO).client("a");
    try (LineageScope scope = Antipode.scope(Lineage.EMPTY.markedIncomplete("blog-posts"))) {
      assertThat(Antipode.barrier().satisfied()).isTrue();
      assertThat(Antipode.barrier().complete()).isFalse();
      scope.remove("blog-posts");
      assertThat(Antipode.barrier().complete()).isTrue();
    }
    assertThat(Antipode.barrier(PATIENT.lineage(Lineage.EMPTY.markedIncomplete("other"))).complete()).isTrue();
  }

  /** BAR-49, BAR-48. */
  @Test
  void theKillSwitchWorksWhileBarriersRun() {
    Fake late = server("t1", Visibility.NOT_YET);
    FakeShim.store("off", Mode.OFF, late);
    FakeShim.store("kept", server("k1", Visibility.VISIBLE));
    try (LineageScope scope = Antipode.scope(position("off").union(position("kept")))) {
      assertThat(scope).isNotNull();
      for (int number = 0; number < 2; number++) {
        BarrierResult result = Antipode.barrier(PATIENT);
        assertThat(result.satisfied()).isTrue();
        assertThat(result.complete()).isFalse();
        assertThat(result.toString()).endsWith("kept visible; off switched off (its mode), not looked at");
      }
    }
    FakeShim.store("late", late);
    assertThat(Antipode.barrier(within(50).lineage(object("late"))).satisfied()).isFalse();
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    assertThat(Antipode.barrier(within(50).lineage(object("late"))).satisfied()).isTrue();
    assertThat(Antipode.barrier().explain())
        .as("no scope, and still no exception in an emergency")
        .isEqualTo("switched off (mode=off): nothing was looked at or waited for");
    assertThat(Antipode.barrierAsync().join().satisfied()).isTrue();
    Antipode.configure(Settings.defaults().mode(Mode.ENFORCE));
    assertThat(Antipode.barrier(within(50).lineage(object("late"))).satisfied()).isFalse();
  }

  /** BAR-46. */
  @Test
  void readOrFallbackReadsHereOrThere() throws Exception {
    Antipode.configure(Settings.defaults().maxFallbacks(1));
    FakeShim.store("here", server("h", Visibility.VISIBLE));
    FakeShim.store("late", server("l", Visibility.NOT_YET));
    BarrierOptions brief = BarrierOptions.defaults().timeout(Duration.ofMillis(50)).lineage(object("late"));
    assertThat(Antipode.readOrFallback(() -> "here", () -> "there", PATIENT.lineage(object("here"))))
        .isEqualTo("here");
    CountDownLatch runs = new CountDownLatch(1);
    CountDownLatch goesOn = new CountDownLatch(1);
    CompletableFuture<String> first = CompletableFuture.supplyAsync(() -> {
      try {
        return Antipode.readOrFallback(() -> "here", () -> {
          runs.countDown();
          goesOn.await(20, TimeUnit.SECONDS);
          return "there";
        }, brief);
      } catch (Exception error) {
        throw new AssertionError(error);
      }
    }, task -> new Thread(task).start());
    assertThat(runs.await(20, TimeUnit.SECONDS)).isTrue();
    assertThatThrownBy(() -> Antipode.readOrFallback(() -> "here", () -> "there", brief))
        .isInstanceOf(BarrierTimeoutException.class)
        .hasMessageStartingWith("no fallback: 1 run already [AP114]\n");
    goesOn.countDown();
    assertThat(first.get(20, TimeUnit.SECONDS)).isEqualTo("there");
    CompletableFuture<String> slow = new CompletableFuture<>();
    CompletableFuture<String> second = Antipode.readOrFallbackAsync(
        () -> CompletableFuture.completedFuture("here"), () -> slow, brief);
    EngineTest.until(() -> slow.getNumberOfDependents() > 0);
    assertThatThrownBy(() -> Antipode.readOrFallback(() -> "here", () -> "there", brief))
        .hasMessageContaining("no fallback");
    slow.complete("there");
    assertThat(second.get(20, TimeUnit.SECONDS)).isEqualTo("there");
    assertThat(Antipode.readOrFallback(() -> "here", () -> "there", brief)).isEqualTo("there");
  }

  /** BAR-50, BAR-51, BAR-48. */
  @Test
  void readsThatWaitObeyTheModeAndThePolicies() {
    MemoryStore store = posts(Duration.ofMillis(80));
    MemoryClient writer = store.client("a");
    MemoryClient plain = store.client("b");
    MemoryClient waiting = store.client("b", StoreOptions.named("blog-posts").waitOnRead(true));
    Antipode.configure(Settings.defaults().timeout(LONG));
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      assertThat(waiting.get("k")).isEqualTo("v");
      writer.set("k", "w");
      try (Reading seen = Antipode.reading(scope.lineage())) {
        assertThat(plain.get("k")).isEqualTo("w");
        assertThat(seen.lineage().isEmpty()).isFalse();
      }
      store.freeze("b");
      writer.set("k", "x");
      Antipode.configure(Settings.defaults().timeout(Duration.ofMillis(100)));
      assertThatThrownBy(() -> waiting.get("k"))
          .isInstanceOf(BarrierTimeoutException.class)
          .hasMessageContaining("wait on read");
      Antipode.configure(Settings.defaults().onTimeout(Policy.PROCEED));
      assertThat(waiting.get("k")).isEqualTo("w");
      Antipode.configure(Settings.defaults().timeout(LONG).mode(Mode.DRY_RUN));
      long began = System.nanoTime();
      assertThat(waiting.get("k")).isEqualTo("w");
      assertThat(Duration.ofNanos(System.nanoTime() - began)).as("it only looked").isLessThan(Duration.ofSeconds(10));
    }
  }

  /** SHIM-31, SHIM-32 and what another kind of store gave (SHIM-15). */
  @Test
  void whatTheStoreCannotHaveGivenIsUnproven() {
    MemoryStore store = posts(Duration.ZERO);
    store.client("a");
    assertThat(Antipode.barrier(PROCEEDING.lineage(object("blog-posts"))).store("blog-posts").verdict())
        .isEqualTo(Verdict.UNPROVEN);
    Lineage ancient = Lineage.of(WriteId.position("blog-posts", "0123456789abcdef", 7));
    assertThat(Antipode.barrier(within(200).lineage(ancient)).store("blog-posts").verdict())
        .isEqualTo(Verdict.UNPROVEN);
    store.settle("0123456789abcdef"); // EPOCH-24
    EngineTest.until(() -> Antipode.barrier(within(500).lineage(ancient)).satisfied());
    assertThat(store.epochs()).containsKey("0123456789abcdef");
  }

  @Test
  void assertBarriersTellsWhetherTheCodeWaited() {
    MemoryStore store = posts(Duration.ZERO);
    MemoryClient writer = store.client("a");
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      assertThat(scope.lineage().isEmpty()).isFalse();
      assertThatThrownBy(() -> BarrierAssertions.assertBarriers("blog-posts")).hasMessageContaining("unprotected");
      Antipode.barrier(PATIENT);
      Antipode.barrier(PATIENT);
      BarrierAssertions.assertBarriers("blog-posts", 2);
    }
    assertThat(Antipode.stores()).extracting("name").containsExactly("blog-posts");
    assertThat(Registry.current().need("blog-posts").toString()).contains("memory");
  }

  /** OBS-8. */
  @Test
  void oneLineSaysWhatIsInForce() {
    Antipode.configure(Settings.defaults().region("b"));
    MemoryStore store = posts(Duration.ZERO);
    store.client("a");
    store.client("b");
    try (CapturedLogs logs = new CapturedLogs(); LineageScope scope = Antipode.scope()) {
      assertThat(scope).isNotNull();
      Antipode.barrier();
      Antipode.barrier(PATIENT);
      assertThat(logs.lines().stream().filter(line -> line.startsWith("mode=")))
          .containsExactly("mode=enforce region=b stores=blog-posts(memory, 2 replicas) trust=private");
    }
  }

  /** BAR-46: an unproven store fails without the second read, unless the call says otherwise. */
  @Test
  void anUnprovenStoreHasNoFallback() throws Exception {
    FakeShim.store("lost", server("a", Visibility.unproven("gone")));
    BarrierOptions options = BarrierOptions.defaults().lineage(object("lost")).timeout(LONG);
    assertThatThrownBy(() -> Antipode.readOrFallback(() -> "here", () -> "there", options))
        .isInstanceOf(BarrierUnprovenException.class);
    assertThat(Antipode.readOrFallback(
        () -> null, () -> Reading.current().after().orElseThrow(), options.onUnproven(Policy.PROCEED)))
        .isEqualTo(object("lost"));
    assertThatThrownBy(() -> Antipode.readOrFallback(() -> "here", () -> "there", options.onUnproven(Policy.REDELIVER)))
        .isInstanceOf(ConfigurationException.class);
  }

  /** BAR-58: also where nothing has to be waited for; a long deadline is said once a site. */
  @Test
  void deadlinesAboveAnHourAreRefusedAndLongOnesAreSaid() {
    Duration tooLong = Duration.ofMinutes(60).plusMillis(1);
    assertThatThrownBy(() -> BarrierOptions.defaults().timeout(tooLong)).isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> StoreOptions.named("s").timeout(tooLong)).isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> Settings.defaults().timeout(tooLong)).isInstanceOf(ConfigurationException.class);
    FakeShim.store("s", new Fake("a", FakeShim.always(Visibility.VISIBLE)));
    try (CapturedLogs logs = new CapturedLogs(); LineageScope scope = Antipode.scope()) {
      for (int turn = 0; turn < 2; turn++) {
        assertThat(Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(61))).satisfied()).isTrue();
      }
      assertThat(logs.text()).containsOnlyOnce("61 s");
    }
  }
}
