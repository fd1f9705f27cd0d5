package dev.antipode.internal.engine;

import static dev.antipode.internal.engine.EngineTest.LONG;
import static dev.antipode.internal.engine.EngineTest.at;
import static dev.antipode.internal.engine.EngineTest.logStore;
import static dev.antipode.internal.engine.EngineTest.object;
import static dev.antipode.internal.engine.EngineTest.until;
import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.StoreOptions;
import dev.antipode.StoreResult;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.EngineTest.Log;
import dev.antipode.internal.engine.EngineTest.LogShim;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Overload answers only for what it asked: looks, lag, waits in a row, bounds (BAR-39, BAR-40, BAR-57, BAR-60). */
@ExtendWith(AntipodeIsolated.class)
class OverloadTest {
  private static void timedOut(Lineage lineage, int times, int millis) {
    for (int turn = 0; turn < times; turn++) {
      assertThat(EngineTest.wait(lineage, Duration.ofMillis(millis)).satisfied()).isFalse();
    }
  }

  /** The reason why a barrier timed out. */
  private static String late(Lineage lineage, int millis) {
    StoreResult result = EngineTest.wait(lineage, Duration.ofMillis(millis)).stores().values().iterator().next();
    assertThat(result.verdict()).isEqualTo(Verdict.TIMED_OUT);
    return result.reason();
  }

  private static Lineage written(MemoryClient writer) {
    try (LineageScope scope = Antipode.scope()) {
      writer.set("x", "v");
      return scope.lineage();
    }
  }

  /** BAR-40: each key counts for itself, and nobody is answered unasked. */
  @Test
  void waitsForObjectsThatNeverComeStopNoOther() throws Exception {
    MemoryStore posts = MemoryStore.named("posts").lag(Duration.ofMillis(20)).versions(Versions.OBJECT);
    MemoryClient writer = posts.client("a");
    assertThat(posts.client("b")).isNotNull();
    Lineage good = written(writer);
    assertThat(EngineTest.wait(good, LONG).satisfied()).isTrue();
    AtomicInteger haunted = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 8; number++) {
      String ghost = "ghost" + number + "-";
      Thread thread = new Thread(() -> {
        for (int turn = 0; !Thread.currentThread().isInterrupted(); turn++) {
          BarrierOptions options = EngineTest.proceeding(object("posts", ghost + turn), Duration.ofMillis(100));
          try {
            Antipode.barrier(options);
          } catch (dev.antipode.BarrierInterruptedException over) {
            return;
          }
          haunted.incrementAndGet();
        }
      });
      threads.add(thread);
      thread.start();
    }
    try {
      for (int turn = 1; turn <= 20; turn++) {
        int seen = turn;
        until(() -> haunted.get() >= 8 * seen);
        assertThat(EngineTest.wait(good, LONG).satisfied()).isTrue();
      }
    } finally {
      threads.forEach(Thread::interrupt);
      for (Thread thread : threads) {
        thread.join();
      }
    }
  }

  /** BAR-57: the next honest write gets that very number. */
  @Test
  void aWishForAPositionThatIsNotWrittenYetIsNoLag() {
    MemoryStore posts = MemoryStore.named("posts").lag(Duration.ofMillis(100));
    MemoryClient writer = posts.client("a");
    assertThat(posts.client("b")).isNotNull();
    Lineage last = written(writer);
    assertThat(EngineTest.wait(last, LONG).satisfied()).isTrue();
    Ordered version = (Ordered) last.ofStore("posts").get(0).version();
    timedOut(Lineage.of(WriteId.position("posts", version.epoch(), version.counter() + 1)), 1, 50);
    long wished = Ticks.now();
    until(() -> Ticks.now() - wished > Duration.ofMillis(1500).toNanos()); // the wish is older than the deadline below
    assertThat(EngineTest.wait(written(writer), Duration.ofMillis(1000)).satisfied()).isTrue();
  }

  @Test
  void whatIsThereIsSeenBehindABarrierThatTimedOut_BAR_40() {
    Log log = logStore();
    timedOut(at(5), 1, 200);
    log.applied = 6;
    assertThat(EngineTest.wait(at(6), Duration.ofMillis(150)).satisfied()).isTrue();
  }

  @Test
  void waitsInARowAtAServerThatStandsStillEndTheNextOneBehindALook_BAR_40() {
    Log log = logStore();
    log.applied = 1;
    assertThat(EngineTest.wait(at(1), LONG).satisfied()).isTrue();
    timedOut(at(5), 5, 200);
    int asked = log.asked.get();
    assertThat(late(at(6), 300)).contains("5 waits in a row timed out there");
    assertThat(log.asked.get()).isGreaterThan(asked);
    assertThat(late(at(6), 900)).as("a longer deadline has not passed in vain yet").doesNotContain("in a row");
    log.applied = 2;
    until(() -> server().appliedIn("e1") == 2);
    assertThat(late(at(6), 100)).as("it grows").doesNotContain("in a row");
    log.applied = 6;
    assertThat(EngineTest.wait(at(6), LONG).satisfied()).isTrue();
  }

  /** A server that is loading, say, has said nothing of the write. */
  @Test
  void aQuestionThatWasPutOffIsNoLook_BAR_40() {
    Log log = logStore();
    log.applied = 1;
    assertThat(EngineTest.wait(at(1), LONG).satisfied()).isTrue();
    timedOut(at(5), 5, 600);
    assertThat(late(at(6), 1100)).contains("5 waits in a row timed out there");
    AtomicInteger asked = new AtomicInteger();
    log.answer = (ids, server) -> FakeShim.always(
        asked.incrementAndGet() <= 2 ? Visibility.unanswered("it is loading") : Visibility.NOT_YET).to(ids, server);
    assertThat(late(at(6), 1100)).doesNotContain("loading");
    assertThat(asked.get()).isGreaterThan(2);
  }

  private static ServerEngine server() {
    return EngineTest.server();
  }

  @Test
  void waitsForOneKeyDoNotCountAgainstAnother_BAR_40() {
    Set<String> there = ConcurrentHashMap.newKeySet();
    FakeShim.store("s", new Fake("s0", (ids, server) -> ids.stream()
        .map(id -> there.contains(id.key().text()) ? Visibility.VISIBLE : Visibility.NOT_YET).toList()));
    Lineage one = object("s", "one");
    timedOut(one, 5, 100);
    assertThat(late(one, 100)).contains("in a row");
    assertThat(late(object("s", "other"), 100)).doesNotContain("in a row");
    there.add("one");
    assertThat(EngineTest.wait(one, LONG).satisfied()).isTrue();
    there.clear();
    assertThat(late(one, 100)).as("a write of the key that was seen ends it").doesNotContain("in a row");
  }

  /** BAR-40, BAR-57: a replica that is behind another server for longer than the deadline is looked up, and no more. */
  @Test
  void lagIsWhatServersShow() {
    Log primary = new Log("log-1");
    Log replica = new Log("log-2");
    FakeShim.store(LogShim::new, StoreOptions.named("log").replicas(primary, replica));
    assertThat(late(at(5), 100)).doesNotContain("lags");
    primary.applied = 5;
    until(() -> late(at(5), 300).contains("lags by"));
    int asked = replica.asked.get();
    assertThat(late(at(5), 300)).contains("lags by");
    assertThat(EngineTest.wait(at(5), Duration.ofMillis(300)).store("log").code()).isEqualTo("AP205"); // OBS-15
    assertThat(replica.asked.get()).isGreaterThan(asked);
    replica.applied = 5;
    assertThat(EngineTest.wait(at(5), Duration.ofSeconds(1)).satisfied()).isTrue();
  }

  /** Of one store and process; the deadline holds while they are being parked, too. */
  @Test
  void parkedEntriesAreBounded_BAR_60() {
    FakeShim.store("s", new Fake("s0", FakeShim.always(Visibility.NOT_YET)));
    List<WriteId> ids = new ArrayList<>();
    for (int number = 0; number < 100_001; number++) {
      ids.add(new WriteId("s", "k" + number, new Ordered("", 1)));
    }
    StoreResult result = Antipode.barrier(BarrierOptions.defaults()
        .lineage(Lineage.of(ids)).timeout(LONG).onTimeout(Policy.PROCEED)).store("s");
    assertThat(result.reason()).contains("overloaded");
    assertThat(result.code()).isEqualTo("AP205"); // OBS-15
    Lineage fewer = Lineage.of(ids.subList(0, 1000));
    assertThat(EngineTest.wait(fewer, Duration.ofMillis(50)).store("s").reason()).doesNotContain("overloaded");
  }

  @Test
  void unknownEpochsAreBounded_BAR_60() {
    Log log = logStore();
    List<WriteId> ids = new ArrayList<>();
    for (int number = 0; number < 1500; number++) {
      ids.add(WriteId.position("log", "unknown" + number, 1));
    }
    assertThat(EngineTest.wait(Lineage.of(ids), Duration.ofMillis(300)).store("log").verdict()).isEqualTo(Verdict.UNPROVEN);
    assertThat(log.asked.get()).isPositive();
    assertThat(server().unknownEpochs()).isLessThanOrEqualTo(1000);
  }
}
