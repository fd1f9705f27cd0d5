package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.Outcome;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The wait engine: single flight, back-off, overload, the free path, unknown epochs. */
@ExtendWith(AntipodeIsolated.class)
class EngineTest {
  static final Duration LONG = Duration.ofSeconds(20);

  static void until(BooleanSupplier condition) {
    long deadline = System.nanoTime() + Duration.ofMinutes(1).toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("the condition did not come true").isLessThan(deadline);
      try {
        Thread.sleep(2);
      } catch (InterruptedException interrupted) {
        throw new AssertionError(interrupted);
      }
    }
  }

  /** Positions; the server says how far it is. */
  static class LogShim extends FakeShim {
    @Override
    public Capabilities capabilities() {
      return Capabilities.positions();
    }
  }

  static final class Log extends Fake {
    volatile String instance = "i1";
    volatile String epoch = "e1";
    volatile long applied;

    Log() {
      this("log-1");
    }

    Log(String name) {
      super(name, null);
      answer = this::judge;
    }

    private List<Visibility> judge(List<WriteId> ids, Server server) {
      String epochNow = epoch;
      long appliedNow = applied;
      server.applied(instance, epochNow, Map.of(epochNow, appliedNow));
      return ids.stream().map(id -> one((Ordered) id.version(), epochNow, appliedNow)).toList();
    }

    private static Visibility one(Ordered wanted, String epoch, long applied) {
      if (!wanted.epoch().equals(epoch)) {
        return Visibility.unknownEpoch("unknown");
      }
      return Long.compareUnsigned(wanted.counter(), applied) <= 0
          ? Visibility.VISIBLE
          : Visibility.notYet("at " + applied);
    }
  }

  static Log logStore() {
    Log log = new Log();
    FakeShim.store(LogShim::new, StoreOptions.named("log").replicas(log));
    return log;
  }

  static RegionStore store() {
    return store("log");
  }

  static RegionStore store(String name) {
    return RegionStore.of(Registry.current().need(name));
  }

  static ServerEngine server() {
    return store().servers(false).get(0);
  }

  static Lineage at(long counter) {
    return at("e1", counter);
  }

  static Lineage at(String epoch, long counter) {
    return Lineage.of(WriteId.position("log", epoch, counter));
  }

  static BarrierOptions proceeding(Lineage lineage, Duration timeout) {
    return BarrierOptions.defaults()
        .lineage(lineage)
        .timeout(timeout)
        .onTimeout(Policy.PROCEED)
        .onUnproven(Policy.PROCEED);
  }

  static BarrierResult wait(Lineage lineage, Duration timeout) {
    return Antipode.barrier(proceeding(lineage, timeout));
  }

  static Lineage object(String store, String key) {
    return Lineage.of(new WriteId(store, key, new Ordered("", 1)));
  }

  static Thread started(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  static void join(Thread thread) throws InterruptedException {
    thread.join(LONG.toMillis());
    assertThat(thread.isAlive()).isFalse();
  }

  static Duration took(Runnable work) {
    long began = System.nanoTime();
    work.run();
    return Duration.ofNanos(System.nanoTime() - began);
  }

  /** BAR-38: at most 25 questions a second to a silent server. */
  @Test
  void onePollerHoweverManyBarriersWait() throws Exception {
    Log log = logStore();
    List<Thread> threads = new ArrayList<>();
    for (int number = 1; number <= 100; number++) {
      Lineage lineage = at(number);
      threads.add(started(() -> wait(lineage, LONG)));
    }
    until(() -> store().parked() == 100);
    Thread.sleep(300); // past the first, quick polls: what is measured is the steady state
    int before = log.asked.get();
    long began = System.nanoTime();
    Thread.sleep(1000);
    assertThat((log.asked.get() - before) / ((System.nanoTime() - began) / 1e9)).isLessThanOrEqualTo(25);
    log.applied = 100;
    for (Thread thread : threads) {
      join(thread);
    }
  }

  /** BAR-41. */
  @Test
  void aReleaseWakesOnlyThoseWhosePositionIsReached() throws Exception {
    Log log = logStore();
    List<Long> passed = new CopyOnWriteArrayList<>();
    for (long counter : new long[] {10, 20, 30}) {
      started(() -> {
        if (wait(at(counter), LONG).satisfied()) {
          passed.add(counter);
        }
      });
    }
    until(() -> store().parked() == 3);
    log.applied = 20;
    until(() -> passed.size() == 2);
    assertThat(passed).containsExactlyInAnyOrder(10L, 20L);
    until(() -> store().parked() == 1);
    log.applied = 30;
    until(() -> passed.size() == 3);
  }

  /** BAR-33 to BAR-35. */
  @Test
  void theFreePathAsksNothingAndExpires() {
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ofSeconds(1)));
    Log log = logStore();
    log.applied = 10;
    try (LineageScope scope = Antipode.scope(at(5))) {
      BarrierResult first = Antipode.barrier();
      // The first barrier's poke may have the server asked once more behind its back: that is no question of the second.
      until(() -> {
        int asked = log.asked.get();
        long free = Outcome.FREE.counted();
        BarrierResult again = Antipode.barrier();
        assertThat(again.stores()).isEqualTo(first.stores());
        return log.asked.get() == asked && Outcome.FREE.counted() == free + 1;
      });
      until(() -> { // a question from before may be answered behind the expiry: then the next one is waited for
        boolean isExpired = !server().holds("e1", 5, Ticks.now());
        int asked = log.asked.get();
        Antipode.barrier();
        return isExpired && log.asked.get() > asked;
      });
      scope.append(WriteId.position("log", "e1", 9)); // another lineage is another question
      assertThat(Antipode.barrier().satisfied()).isTrue();
    }
  }

  @Test
  void aFreePassStillRefusesMistakes() {
    Antipode.configure(Settings.defaults().freePathTtl(LONG));
    Log log = logStore();
    log.applied = 10;
    try (LineageScope scope = Antipode.scope(at(5))) {
      assertThat(scope).isNotNull();
      Antipode.barrier();
      BarrierOptions plain = BarrierOptions.defaults();
      for (BarrierOptions wrong : List.of(
          plain.onTimeout(Policy.REDELIVER), plain.onTimeout(Policy.AS_TIMEOUT), plain.onVacuous(Policy.AS_TIMEOUT))) {
        assertThatThrownBy(() -> Antipode.barrier(wrong)).isInstanceOf(ConfigurationException.class);
      }
      assertThatThrownBy(() -> plain.timeout(null)).isInstanceOf(ConfigurationException.class);
      assertThatThrownBy(() -> plain.timeout(Duration.ofMillis(-1))).isInstanceOf(ConfigurationException.class);
    }
  }

  /** BAR-34. */
  @Test
  void aFreePathOfZeroAlwaysAsks() {
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ZERO));
    Log log = logStore();
    log.applied = 10;
    try (LineageScope scope = Antipode.scope(at(5))) {
      assertThat(scope).isNotNull();
      for (int number = 0; number < 3; number++) {
        int asked = log.asked.get();
        Antipode.barrier();
        assertThat(log.asked.get()).isGreaterThan(asked);
      }
    }
  }

  /** EPOCH-12, EPOCH-13. */
  @Test
  void anUnknownEpochIsWaitedForThenUnprovenAtOnceUntilTheServerChanges() {
    Log log = logStore();
    Duration deadline = Duration.ofMillis(600);
    AtomicReference<BarrierResult> result = new AtomicReference<>();
    assertThat(took(() -> result.set(wait(at("e2", 7), deadline)))).isGreaterThan(Duration.ofMillis(590));
    assertThat(result.get().store("log").verdict()).isEqualTo(Verdict.UNPROVEN);
    assertThat(took(() -> result.set(wait(at("e2", 8), deadline)))).isLessThan(Duration.ofMillis(450));
    assertThat(result.get().store("log").verdict()).isEqualTo(Verdict.UNPROVEN);
    Duration longer = Duration.ofMillis(3000);
    assertThat(took(() -> result.set(wait(at("e2", 8), longer)))).isGreaterThan(Duration.ofMillis(800));
    assertThat(result.get().store("log").verdict()).isEqualTo(Verdict.UNPROVEN);
    log.applied = 9;
    log.epoch = "e2";
    assertThat(wait(at("e2", 8), LONG).satisfied()).isTrue();
  }

  @Test
  void anImpossiblePositionDoesNotStopOthers() {
    Log log = logStore();
    log.applied = 10;
    for (int number = 0; number < 3; number++) {
      assertThat(wait(at(-1L), Duration.ofMillis(100)).satisfied()).as("2^64-1 is not small (WIRE-9)").isFalse();
    }
    log.applied = 11;
    assertThat(wait(at(11), LONG).satisfied()).isTrue();
  }

  /** BAR-39. */
  @Test
  void atMostSoManyPark() throws Exception {
    Antipode.configure(Settings.defaults().maxWaiters(3).maxTasks(2));
    Log log = logStore();
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 3; number++) {
      threads.add(started(() -> wait(at(1), LONG)));
    }
    until(() -> store().parked() == 3);
    AtomicReference<BarrierResult> result = new AtomicReference<>();
    assertThat(took(() -> result.set(wait(at(1), LONG)))).isLessThan(Duration.ofSeconds(5));
    assertThat(result.get().store("log").reason()).contains("overloaded");
    assertThat(result.get().store("log").verdict()).isEqualTo(Verdict.TIMED_OUT);
    assertThat(result.get().store("log").code()).isEqualTo("AP205"); // OBS-15
    List<CompletableFuture<BarrierResult>> futures = new ArrayList<>();
    for (int number = 0; number < 3; number++) {
      futures.add(Antipode.barrierAsync(proceeding(at(1), LONG)));
    }
    assertThat(futures.get(2).get(5, TimeUnit.SECONDS).store("log").reason()).contains("overloaded");
    log.applied = 1;
    for (Thread thread : threads) {
      join(thread);
    }
    assertThat(futures.get(0).get(20, TimeUnit.SECONDS).satisfied()).isTrue();
    assertThat(futures.get(1).get(20, TimeUnit.SECONDS).satisfied()).isTrue();
    until(() -> store().parked() == 0);
  }

  @Test
  void theThreadEndsWhenNobodyWaits() {
    long before = ServerEngine.lingerFor(Duration.ofMillis(50).toNanos());
    try {
      Log log = logStore();
      log.applied = 1;
      wait(at(1), LONG);
      until(() -> server().thread() == null);
      log.applied = 2;
      assertThat(wait(at(2), LONG).satisfied()).as("and begins again for the next").isTrue();
    } finally {
      ServerEngine.lingerFor(before);
    }
  }

  /** BAR-12. */
  @Test
  void objectsAreAskedTogetherAndTheWorstDecides() {
    Map<String, Visibility> wanted =
        Map.of("a", Visibility.VISIBLE, "b", Visibility.NOT_YET, "c", Visibility.unproven("no"));
    FakeShim.store("o", new Fake("o1", (ids, server) -> ids.stream().map(id -> wanted.get(id.key().text())).toList()));
    Duration brief = Duration.ofMillis(300);
    Lineage both = object("o", "a").union(object("o", "b"));
    assertThat(wait(object("o", "a"), LONG).store("o").verdict()).isEqualTo(Verdict.VISIBLE);
    assertThat(wait(both, brief).store("o").verdict()).isEqualTo(Verdict.TIMED_OUT);
    assertThat(wait(both.union(object("o", "c")), brief).store("o").verdict()).isEqualTo(Verdict.UNPROVEN);
  }

  @Test
  void aShimThatAnswersTooLittleProvesNothing() {
    FakeShim.store("o", new Fake("o1", (ids, server) -> List.of()));
    assertThatThrownBy(() -> Antipode.barrier(BarrierOptions.defaults().lineage(object("o", "k")).timeout(LONG)))
        .isInstanceOf(BarrierUnprovenException.class)
        .hasMessageContaining("answers");
  }

  /** A server that comes back and refuses is asked at the pace of a poll, not without a pause. */
  @Test
  void aServerThatWasDownAndThenRefusesIsNotAskedInALoop() throws Exception {
    Fake fake = new Fake("o1", FakeShim.DOWN);
    FakeShim.store("o", fake);
    wait(object("o", "k"), Duration.ofMillis(200));
    fake.answer = (ids, server) -> {
      throw new IllegalStateException("NOAUTH");
    };
    assertThat(wait(object("o", "k"), LONG).store("o").reason()).contains("NOAUTH");
    int before = fake.asked.get();
    Thread.sleep(500);
    assertThat(fake.asked.get() - before).isLessThan(50);
  }

  /** Its barriers would wait for a thread that is gone, and nobody would start another. */
  @Test
  void settingsThatCannotBeReadAnewDoNotEndTheThreadThatAsks() {
    Log log = logStore();
    log.applied = 1;
    assertThat(wait(at(1), LONG).satisfied()).isTrue();
    Thread thread = server().thread();
    assertThat(thread).isNotNull();
    try {
      ProcessSettings.environment(Map.of("ANTIPODE_TIMEOUT_MS", "-1"));
      FakeShim.Answer answer = log.answer;
      int asked = log.asked.get();
      log.answer = (ids, server) -> {
        throw new Error("a shim's defect");
      };
      server().changed();
      until(() -> { // each is told of the fault at once
        server().park(new WaitGroup(LONG.toNanos(), () -> {}).add(WriteId.position("log", "e1", 2), server()));
        return log.asked.get() > asked + 1;
      });
      log.applied = 2;
      log.answer = answer;
    } finally {
      ProcessSettings.environment(null);
    }
    until(() -> wait(at(2), LONG).satisfied()); // who comes while the last fault is told is told of it, too
    assertThat(server().thread()).isSameAs(thread);
  }
}
