package dev.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierInterruptedException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BlockingCallException;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Barriers that wait without a thread, and those that may not block or are interrupted (BAR-31, BAR-32). */
@ExtendWith(AntipodeIsolated.class)
class FutureTest {
  /** No thread a barrier, and all of them released together; the figure is the benchmark's. */
  @Test
  void tenThousandFuturesAreReleasedTogether() throws Exception {
    EngineTest.Log log = EngineTest.logStore();
    List<CompletableFuture<BarrierResult>> futures = new ArrayList<>();
    for (int number = 0; number < 10_000; number++) {
      futures.add(Antipode.barrierAsync(EngineTest.proceeding(EngineTest.at(1 + number), Duration.ofSeconds(60))));
    }
    assertThat(EngineTest.store().parked()).isEqualTo(10_000);
    log.applied = 10_000;
    CompletableFuture.allOf(futures.toArray(CompletableFuture[]::new)).get(20, TimeUnit.SECONDS);
    for (CompletableFuture<BarrierResult> future : futures) {
      assertThat(future.join().satisfied()).isTrue();
    }
    assertThat(EngineTest.store().parked()).isZero();
  }

  /** BAR-32. */
  @Test
  void aCancelledFutureGivesItsPlaceUp() {
    EngineTest.logStore();
    CompletableFuture<BarrierResult> future = Antipode.barrierAsync(EngineTest.proceeding(EngineTest.at(1), EngineTest.LONG));
    assertThat(EngineTest.store().parked()).isEqualTo(1);
    assertThat(future.cancel(true)).isTrue();
    assertThatThrownBy(future::join).isInstanceOf(CancellationException.class);
    assertThat(EngineTest.store().parked()).isZero();
    assertThat(EngineTest.server().live()).isZero();
    assertThat(EngineTest.server().probe("e1")).as("nobody goes on asking for it").isNull();
    CompletableFuture<BarrierResult> late =
        Antipode.barrierAsync(EngineTest.proceeding(EngineTest.at(1), EngineTest.LONG)).orTimeout(10, TimeUnit.MILLISECONDS);
    assertThatThrownBy(late::join).hasCauseInstanceOf(java.util.concurrent.TimeoutException.class);
    assertThat(EngineTest.store().parked()).isZero();
  }

  /** BAR-28, BAR-32. */
  @Test
  void aFutureEndsAtItsDeadlineWithThePolicysException() {
    EngineTest.logStore();
    BarrierOptions raising = BarrierOptions.defaults().lineage(EngineTest.at(1)).timeout(Duration.ofMillis(50));
    CompletableFuture<BarrierResult> future = Antipode.barrierAsync(raising);
    assertThatThrownBy(() -> future.get(20, TimeUnit.SECONDS))
        .hasCauseInstanceOf(dev.antipode.BarrierTimeoutException.class);
    assertThat(EngineTest.store().parked()).isZero();
    assertThatThrownBy(() -> Antipode.barrierAsync()).isInstanceOf(ConfigurationException.class);
  }

  /** What depends on a future runs where the call says, and nothing of the application's on the thread that asks. */
  @Test
  void whatDependsOnAFutureRunsOnTheExecutor() throws Exception {
    EngineTest.Log log = EngineTest.logStore();
    List<String> ran = new CopyOnWriteArrayList<>();
    CountDownLatch done = new CountDownLatch(3);
    java.util.concurrent.Executor own = work -> EngineTest.started(() -> {
      Thread.currentThread().setName("the application's");
      work.run();
    });
    java.util.concurrent.Executor closed = work -> {
      throw new java.util.concurrent.RejectedExecutionException("closed");
    };
    for (java.util.concurrent.Executor executor : java.util.Arrays.asList(own, null, closed)) {
      Antipode.barrierAsync(EngineTest.proceeding(EngineTest.at(1), EngineTest.LONG).executor(executor)).thenRun(() -> {
        ran.add(Thread.currentThread().getName());
        done.countDown();
      });
    }
    log.applied = 1;
    assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
    assertThat(ran).contains("the application's").allMatch(name -> !name.startsWith("antipode-log"));
    assertThat(ran.stream().filter(name -> name.startsWith("antipode-futures"))).hasSize(2);
  }

  /** BAR-31: also with nothing to wait for. */
  @Test
  void aBlockingBarrierWhereNothingMayBlockIsRefused() throws Exception {
    EngineTest.Log log = EngineTest.logStore();
    log.applied = 1;
    CompletableFuture<Throwable> refused = new CompletableFuture<>();
    EngineThreads.FUTURES.execute(() -> {
      try {
        Antipode.barrier(EngineTest.proceeding(Lineage.EMPTY, EngineTest.LONG));
        refused.complete(null);
      } catch (Throwable error) {
        refused.complete(error);
      }
    });
    assertThat(refused.get(20, TimeUnit.SECONDS))
        .isInstanceOf(BlockingCallException.class)
        .hasMessageContaining("barrierAsync");
  }

  @Test
  void anInterruptEndsTheWaitAndKeepsTheFlag() throws Exception {
    EngineTest.logStore();
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    AtomicBoolean flag = new AtomicBoolean();
    Thread waiting = EngineTest.started(() -> {
      try {
        EngineTest.wait(EngineTest.at(1), EngineTest.LONG);
      } catch (BarrierInterruptedException error) {
        thrown.set(error);
        flag.set(Thread.currentThread().isInterrupted());
      }
    });
    EngineTest.until(() -> EngineTest.store().parked() == 1);
    waiting.interrupt();
    EngineTest.join(waiting);
    assertThat(thrown.get()).isInstanceOf(BarrierInterruptedException.class);
    assertThat(flag).isTrue();
    assertThat(EngineTest.store().parked()).isZero();
    assertThat(EngineTest.server().live()).isZero();
  }
}
