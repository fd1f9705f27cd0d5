package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
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
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** When a server is asked next (BAR-38, BAR-66): by a prediction where its position grows. */
@ExtendWith(AntipodeIsolated.class)
class PaceTest {
  private static final Proofs KNOWN = new Proofs("i1", "e1", Map.of(), 0, 0);
  private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long POLL = 5 * MS;
  private static final long STEP = MS / 2;
  private static final long FAR = 1_000_000_000L;

  /** A thread that asks, played on a clock of its own; {@code position}: what is there at a time. */
  private static final class Played {
    final Growth growth = new Growth();
    final Pace pace = new Pace(growth);
    final List<Long> asked = new ArrayList<>();
    private final LongUnaryOperator position;
    private final boolean pushes;
    private long pushed;
    long now;

    Played(LongUnaryOperator position, boolean pushes) {
      this.position = position;
      this.pushes = pushes;
    }

    /** Play so long; return when it was asked meanwhile. */
    List<Long> play(long nanos, long nearest) {
      final int before = asked.size();
      for (long until = now + nanos; now < until; now += STEP) {
        if (pushes && position.applyAsLong(now) > pushed) {
          pushed = position.applyAsLong(now);
          pace.noteNews();
          growth.notePush();
        }
        if (now >= pace.due(POLL, KNOWN, nearest)) {
          ask(true);
        }
      }
      return asked.subList(before, asked.size());
    }

    void ask(boolean isPaced) {
      long there = position.applyAsLong(now);
      boolean moved = asked.isEmpty() || there > position.applyAsLong(last());
      asked.add(now);
      pushed = there; // what was pushed before the answer, the answer knows
      pace.begin(now, isPaced);
      growth.note("i1", "e1", now, there);
      pace.end(POLL, false, moved, false);
    }

    long last() {
      return asked.get(asked.size() - 1);
    }

    long firstFrom(long time) {
      return asked.stream().filter(each -> each >= time).findFirst().orElseThrow();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aServerThatGrowsAllTheTimeIsAskedNoMoreThanTheCapSays(boolean pushes) {
    Played played = new Played(at -> at / STEP, pushes);
    played.play(500 * MS, FAR);
    assertThat(played.play(1000 * MS, FAR)).hasSizeBetween(15, 21);
  }

  /** REC-21, BAR-38: behind records the interval begins anew, however long it had become. */
  @Test
  void behindABarrierAServerIsAskedNoMoreAtLeisure() {
    Pace pace = new Pace(new Growth());
    for (int turn = 0; turn < 20; turn++) {
      pace.begin(0, true);
      pace.end(POLL, false, false, true);
    }
    assertThat(pace.due(POLL, KNOWN, null)).isGreaterThanOrEqualTo(9 * POLL);
    pace.hurry(false);
    pace.begin(0, false);
    pace.end(POLL, false, false, false);
    assertThat(pace.due(POLL, KNOWN, null)).isLessThanOrEqualTo(3 * POLL);
  }

  /** BAR-38: 50 ms behind the first question that was not answered. */
  @Test
  void thePauseBehindSilenceDoublesUpToHalfASecond() {
    Pace pace = new Pace(new Growth());
    List<Long> pauses = new ArrayList<>();
    for (boolean isDown : new boolean[] {true, true, true, true, true, true, false, true, true}) {
      pace.end(POLL, isDown, false, false);
      pauses.add(pace.retry() / MS);
    }
    assertThat(pauses).containsExactly(50L, 100L, 200L, 400L, 500L, 500L, 50L, 50L, 100L);
  }

  /** BAR-66: neither hours of answers nor a pause of hours make it drift. */
  @Test
  void aPredictionIsAsGoodBehindHours() {
    Growth growth = new Growth();
    long now = 0;
    for (long answer = 0; answer < 4_000_000; answer++) { // eleven hours of them
      now += 10 * MS;
      growth.notePush();
      growth.note("i1", "e1", now, now / MS);
    }
    assertThat(growth.expectedAt(KNOWN, now / MS + 20) - now).isBetween(20 * MS, 23 * MS);
    now += TimeUnit.HOURS.toNanos(100);
    growth.note("i1", "e1", now, now / MS);
    assertThat(growth.expectedAt(KNOWN, now / MS + 20) - now).isBetween(20 * MS, 23 * MS);
    assertThat(growth.expectedAt(KNOWN, Long.MIN_VALUE) - now).as("unsigned, and capped").isEqualTo(Growth.CAP);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aNearPositionIsAskedForWhenItShouldBeThere(boolean pushes) {
    Played played = new Played(at -> at / MS, pushes);
    played.play(500 * MS, FAR);
    played.ask(false);
    long wanted = played.last() / MS + 30;
    assertThat(played.play(50 * MS, wanted).get(0)).isBetween(wanted * MS - MS, wanted * MS + 6 * MS);
  }

  @Test
  void fewPushesAreCounted() {
    Played played = new Played(at -> at / (2 * MS) * 100, true);
    played.play(500 * MS, FAR);
    played.ask(false);
    long third = played.last() / (2 * MS) + 3;
    assertThat(played.play(50 * MS, third * 100).get(0)).isBetween(third * 2 * MS, third * 2 * MS + 2 * STEP);
  }

  @Test
  void pushesThatComeSeldomAreAskedForEach() {
    long large = 480 * MS;
    Played played = new Played(at -> at / (60 * MS) + 1 + (at >= large ? 1000 : 0), true);
    played.play(large + 50 * MS, 1005);
    assertThat(played.firstFrom(large)).isLessThanOrEqualTo(large + POLL + 2 * STEP);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatComesBeforeItsPredictionIsFoundWithinTheCap(boolean pushes) {
    long leap = 710 * MS;
    Played played = new Played(at -> at / (10 * MS) + (at >= leap ? 1000 : 0), pushes);
    played.play(900 * MS, 1000);
    assertThat(played.firstFrom(leap)).isLessThanOrEqualTo(leap + 50 * MS + STEP);
  }

  @Test
  void aServerThatStandsStillIsAskedAtThePaceOfPoll() {
    Played played = new Played(at -> Math.min(at, 500 * MS) / MS, false);
    played.play(600 * MS, FAR);
    List<Long> asked = played.play(1000 * MS, FAR);
    assertThat(asked).hasSizeBetween(15, 25);
  }

  @Test
  void nothingIsPredictedForOtherData() {
    Played played = new Played(at -> at / MS, false);
    played.play(500 * MS, FAR);
    Growth growth = played.growth;
    assertThat(growth.expectedAt(KNOWN, 600L)).isNotNull();
    assertThat(growth.expectedAt(new Proofs("i1", "e2", Map.of(), 0, 0), 600L)).isNull();
    assertThat(growth.expectedAt(new Proofs("i2", "e1", Map.of(), 0, 0), 600L)).isNull();
    assertThat(growth.expectedAt(KNOWN, null)).isNull();
    growth.note("i1", "e1", played.now, 10); // it went back
    assertThat(growth.expectedAt(KNOWN, 600L)).isNull();
  }

  @Test
  void positionsAreUnsigned() {
    Played played = new Played(at -> Long.MAX_VALUE - 100 + at / MS, false);
    played.play(500 * MS, -1L);
    assertThat(played.growth.expectedAt(KNOWN, -1L)).isEqualTo(played.last() + 50 * MS);
  }

  /** Positions that grow with the time, pushed all the time. */
  private static final class GrowingShim extends LogShim {
    static final AtomicInteger PUSHED = new AtomicInteger();

    @Override
    public Capabilities capabilities() {
      return Capabilities.positions().push(true);
    }

    @Override
    public Watch watch(Server server) {
      Thread pushing =
          new Thread(
              () -> {
                while (!Thread.currentThread().isInterrupted()) {
                  server.changed();
                  PUSHED.incrementAndGet();
                  try {
                    Thread.sleep(2);
                  } catch (InterruptedException ended) {
                    return;
                  }
                }
              });
      pushing.setDaemon(true);
      pushing.start();
      return pushing::interrupt;
    }
  }

  private static long position() {
    return System.nanoTime() / MS + FAR;
  }

  private static Lineage at(long counter) {
    return Lineage.of(WriteId.position("growing", "e1", counter));
  }

  @Test
  void pushesAtEachWriteAreNotAskedFor() {
    Fake fake = new Fake("growing-1", (ids, server) -> {
      long now = position();
      server.applied("i1", "e1", Map.of("e1", now));
      return ids.stream()
          .map(id -> ((Ordered) id.version()).counter() <= now ? Visibility.VISIBLE : Visibility.notYet("at " + now))
          .toList();
    });
    FakeShim.store(GrowingShim::new, StoreOptions.named("growing").replicas(List.of(fake)));
    Antipode.barrierAsync(EngineTest.proceeding(at(position() + FAR * FAR), Duration.ofSeconds(50)));
    EngineTest.until(() -> fake.asked.get() >= 8); // how it grows is known by then
    int asked = fake.asked.get();
    int pushed = GrowingShim.PUSHED.get();
    long begun = System.nanoTime();
    EngineTest.until(() -> GrowingShim.PUSHED.get() - pushed >= 300);
    assertThat((long) fake.asked.get() - asked).isLessThanOrEqualTo((System.nanoTime() - begun) / (50 * MS) + 5);
    long wanted = position() + 100;
    assertThat(Antipode.barrier(EngineTest.proceeding(at(wanted), Duration.ofSeconds(50))).satisfied()).isTrue();
    assertThat(position()).isGreaterThanOrEqualTo(wanted);
  }
}
