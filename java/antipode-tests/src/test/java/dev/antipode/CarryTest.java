package dev.antipode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.internal.scope.UnflushedChanges;
import dev.antipode.shim.PendingWrite;
import dev.antipode.testing.AntipodeIsolated;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Taking the scope along (SCOPE-7, SCOPE-11, SCOPE-12). */
@ExtendWith(AntipodeIsolated.class)
class CarryTest {
  private final ExecutorService pool = Executors.newFixedThreadPool(2);

  private static WriteId at(long counter, String store) {
    return WriteId.position(store, "e", counter);
  }

  @AfterEach
  void end() {
    pool.shutdownNow();
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aThreadInheritsNothingAndCarryBringsIt() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      Callable<LineageScope> look = LineageScope::current;
      assertThat(pool.submit(look).get(30, TimeUnit.SECONDS)).isNull();
      assertThat(pool.submit(Antipode.carry(look)).get(30, TimeUnit.SECONDS)).isSameAs(scope);
      Function<Integer, Integer> twice = Antipode.carry((Integer n) -> {
        Antipode.append(at(n, "posts"));
        return 2 * n;
      });
      assertThat(CompletableFuture.supplyAsync(() -> 21, pool).thenApply(twice).get(30, TimeUnit.SECONDS))
          .isEqualTo(42);
      assertThat(scope.lineage().serialize()).isEqualTo("1~posts..e.21");
    }
  }

  /** SCOPE-27: a transaction is its thread's own, so what it has not flushed is looked for before the work leaves that. */
  @Test
  void workThatLeavesATransactionKnowsWhatThatHasNotFlushed_SCOPE_27() throws Exception {
    Thread own = Thread.currentThread();
    Consumer<LineageScope> mapper = scope -> {
      if (Thread.currentThread() == own && scope.pending().isEmpty()) {
        scope.begin(new PendingWrite("posts"));
      }
    };
    UnflushedChanges.ask(mapper);
    try (LineageScope scope = Antipode.scope()) {
      Callable<Lineage> look = () -> LineageScope.current().lineage();
      assertThat(pool.submit(Antipode.carry(look)).get(30, TimeUnit.SECONDS).isComplete()).isFalse();
    } finally {
      UnflushedChanges.forget(mapper);
    }
  }

  /** SCOPE-12: the thread's own is there again, also when the work throws. */
  @Test
  void theThreadsOwnScopeIsRestored() {
    Runnable fails;
    try (LineageScope first = Antipode.scope()) {
      fails = Antipode.carry((Runnable) () -> {
        assertThat(LineageScope.current()).isSameAs(first);
        throw new IllegalStateException("no");
      });
    }
    try (LineageScope own = Antipode.scope()) {
      assertThatThrownBy(fails::run).isInstanceOf(IllegalStateException.class);
      assertThat(LineageScope.current()).isSameAs(own);
    }
  }

  @Test
  void carryAllWrapsAnExecutor() throws Exception {
    ExecutorService carrying = Antipode.carryAll(pool);
    try (LineageScope scope = Antipode.scope()) {
      Callable<LineageScope> look = LineageScope::current;
      assertThat(carrying.submit(look).get(30, TimeUnit.SECONDS)).isSameAs(scope);
      for (Future<LineageScope> each : carrying.invokeAll(List.of(look, look), 30, TimeUnit.SECONDS)) {
        assertThat(each.get()).isSameAs(scope);
      }
      CountDownLatch ran = new CountDownLatch(1);
      carrying.execute(() -> {
        Antipode.append(at(1, "posts"));
        ran.countDown();
      });
      await(ran);
      assertThat(scope.lineage().serialize()).isEqualTo("1~posts..e.1");
    }
    carrying.shutdown();
    assertThat(carrying.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    assertThat(carrying.isShutdown() && carrying.isTerminated()).isTrue();
  }

  /** SCOPE-7. */
  @Test
  void aDetachedScopeIsACopy() {
    try (LineageScope outer = Antipode.scope(Lineage.of(at(1, "posts")))) {
      LineageScope detached = Antipode.detachedScope();
      Antipode.append(at(5, "posts"));
      detached.close();
      outer.append(at(3, "posts"));
      assertThat(detached.lineage().serialize()).isEqualTo("1~posts..e.5");
      assertThat(outer.lineage().serialize()).isEqualTo("1~posts..e.3");
    }
    try (LineageScope alone = Antipode.detachedScope()) {
      assertThat(alone.lineage()).isEqualTo(Lineage.EMPTY);
    }
  }

  /** SCOPE-12: work that outlives the request still records what it writes. */
  @Test
  void aDetachedScopeStaysOpenUntilTheWorkThatCarriesItHasEnded() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    LineageScope detached;
    Future<?> one;
    Future<?> two;
    try (LineageScope outer = Antipode.scope()) {
      detached = Antipode.detachedScope();
      one = pool.submit(Antipode.carry(() -> work(go, "s1")));
      two = Antipode.carryAll(pool).submit(() -> work(go, "s2"));
      detached.close();
    }
    assertThat(detached.isClosed()).isFalse();
    go.countDown();
    one.get(30, TimeUnit.SECONDS);
    two.get(30, TimeUnit.SECONDS);
    assertThat(detached.lineage().stores()).containsExactly("s1", "s2");
    assertThat(detached.isClosed()).isTrue();
  }

  private static void work(CountDownLatch go, String store) {
    await(go);
    Antipode.append(at(1, store));
  }

  @Test
  void aDetachedScopeClosesAlsoWhenTheWorkFailsIsCancelledOrRefused() {
    LineageScope detached = Antipode.detachedScope();
    Runnable fails = Antipode.carry((Runnable) () -> {
      throw new IllegalStateException("no");
    });
    CountDownLatch never = new CountDownLatch(1);
    pool.execute(() -> await(never));
    pool.execute(() -> await(never));
    Future<?> waiting = Antipode.carryAll(pool).submit(() -> {});
    ExecutorService ended = Executors.newSingleThreadExecutor();
    ended.shutdownNow();
    assertThatThrownBy(() -> Antipode.carryAll(ended).submit(() -> {})).isInstanceOf(RejectedExecutionException.class);
    detached.close();
    assertThat(detached.isClosed()).isFalse();
    assertThatThrownBy(fails::run).isInstanceOf(IllegalStateException.class);
    assertThat(detached.isClosed()).isFalse();
    waiting.cancel(false);
    assertThat(detached.isClosed()).isTrue();
    assertThatThrownBy(fails::run).isInstanceOf(IllegalStateException.class);
    assertThat(detached.isClosed()).isTrue(); // a second run does not open it
    never.countDown();
  }
}
