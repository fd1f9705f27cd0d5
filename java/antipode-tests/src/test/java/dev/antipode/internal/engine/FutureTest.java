package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierInterruptedException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BlockingCallException;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
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

  /** BAR-32: whatever the application's executor throws. */
  @Test
  void aFutureCompletesOnceWhereItsExecutorFails() throws Exception {
    EngineTest.Log log = EngineTest.logStore();
    List<Runnable> queued = new CopyOnWriteArrayList<>();
    Executor full = work -> {
      throw new OutOfMemoryError("unable to create native thread");
    };
    Executor broken = work -> {
      throw new IllegalStateException("a defect");
    };
    Executor late = work -> { // as a pool that cannot start the thread for what it has queued
      queued.add(work);
      throw new OutOfMemoryError("unable to create native thread");
    };
    List<CompletableFuture<BarrierResult>> futures = new ArrayList<>();
    for (Executor executor : List.of(full, broken, late)) {
      futures.add(Antipode.barrierAsync(EngineTest.proceeding(EngineTest.at(1), EngineTest.LONG).executor(executor)));
    }
    log.applied = 1;
    for (CompletableFuture<BarrierResult> future : futures) {
      assertThat(future.get(1, TimeUnit.MINUTES).satisfied()).isTrue();
    }
    EngineTest.until(() -> EngineTest.store().parked() == 0);
    assertThat(queued).hasSize(1);
    queued.forEach(Runnable::run);
    assertThat(EngineTest.store().parked()).as("its place is given back once").isZero();
    assertThat(EngineTest.server().live()).isZero();
  }

  /** BAR-32, BAR-65: it completes with the error, and nothing of the wait is left. */
  @Test
  void aFutureCompletesWhereItsNextWaitCannotBegin() {
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ZERO));
    EngineTest.Log log = EngineTest.logStore();
    AtomicReference<Fake> client = new AtomicReference<>(new Fake("own", FakeShim.always(Visibility.VISIBLE)));
    AtomicInteger left = new AtomicInteger(); // until a look fails
    StoreOptions plain = StoreOptions.named("log");
    CountDownLatch over = new CountDownLatch(1);
    Function<Object, List<Fake>> asking = it -> client.get().name.equals("own") ? List.of(client.get()) : hold(over);
    EngineTest.store().expectServer(plain, "a client", client, asking, it -> {
      if (!Thread.currentThread().getName().startsWith("antipode-futures")) { // who waits has it looked at, too (BAR-65)
        return client.get();
      }
      int now = left.decrementAndGet();
      if (now == 1) {
        log.answer = FakeShim.always(Visibility.NOT_YET); // so that its next wait has parked there
      }
      if (now == 0) {
        throw new OutOfMemoryError("a look's");
      }
      return client.get();
    }).ask();
    CompletableFuture<BarrierResult> future = Antipode.barrierAsync(EngineTest.proceeding(EngineTest.at(1), EngineTest.LONG));
    assertThat(EngineTest.store().parked()).isEqualTo(1);
    client.set(new Fake("another", FakeShim.always(Visibility.VISIBLE)));
    left.set(2); // the first names the servers anew, the second parks there
    log.applied = 1;
    assertThatThrownBy(() -> future.get(1, TimeUnit.MINUTES)).hasCauseInstanceOf(OutOfMemoryError.class);
    over.countDown();
    assertThat(EngineTest.store().parked()).isZero();
    assertThat(EngineTest.server().live()).isZero();
  }

  private static List<Fake> hold(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    return List.of();
  }

  /** BAR-31: it runs what goes on behind a barrier, where the application's executor is the thread itself. */
  @Test
  void theThreadThatAsksAServerIsOneThatMustNotBlock() {
    EngineTest.Log log = EngineTest.logStore();
    BarrierOptions options = EngineTest.proceeding(EngineTest.at(1), EngineTest.LONG).executor(Runnable::run);
    AtomicReference<String> thread = new AtomicReference<>();
    CompletableFuture<BarrierResult> next = Antipode.barrierAsync(options).thenApply(result -> {
      thread.set(Thread.currentThread().getName());
      return EngineTest.wait(EngineTest.at(2), EngineTest.LONG);
    });
    log.applied = 1;
    assertThatThrownBy(() -> next.get(1, TimeUnit.MINUTES)).hasCauseInstanceOf(BlockingCallException.class);
    assertThat(thread.get()).startsWith("antipode-log");
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
