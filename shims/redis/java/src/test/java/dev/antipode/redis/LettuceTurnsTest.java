package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Whose turn it is on a shared connection: order, turns alone, and that nothing leaves it shut. */
class LettuceTurnsTest {
  private final LettuceTurns turns = new LettuceTurns();
  private final List<String> done = Collections.synchronizedList(new ArrayList<>());
  private final List<Runnable> ends = new ArrayList<>();

  private void beside(String name) {
    turns.beside(
        end -> {
          done.add(name);
          end.run();
        },
        () -> () -> done.add(name + " had waited"));
  }

  @Test
  void aTurnAloneWaitsForThoseBefore_andHoldsBackThoseBehind() {
    turns.beside(ends::add, () -> () -> {});
    beside("first");
    turns.alone(end -> {
      done.add("alone");
      ends.add(end);
    });
    beside("second");
    assertThat(done).containsExactly("first");
    ends.get(0).run();
    ends.get(0).run(); // an end counts once
    assertThat(done).containsExactly("first", "alone");
    beside("third");
    ends.get(1).run();
    assertThat(done).containsExactly("first", "alone", "second", "second had waited", "third", "third had waited");
    beside("fourth");
    assertThat(done).last().isEqualTo("fourth");
  }

  @Test
  void whatThrowsLeavesNobodyWaiting() {
    assertThatThrownBy(() -> turns.beside(
            end -> {
              throw new IllegalStateException("beside");
            },
            () -> () -> {}))
        .hasMessage("beside");
    turns.beside(ends::add, () -> () -> {});
    List<Throwable> told = new ArrayList<>();
    Thread.UncaughtExceptionHandler before = Thread.currentThread().getUncaughtExceptionHandler();
    Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> told.add(error));
    try {
      turns.alone(end -> {
        throw new IllegalStateException("alone");
      });
      beside("behind");
      ends.get(0).run();
    } finally {
      Thread.currentThread().setUncaughtExceptionHandler(before);
    }
    assertThat(told).hasSize(1);
    assertThat(done).containsExactly("behind", "behind had waited");
  }

  @Test
  void threadsKeepTheirOrder_andATurnAloneIsAlone() throws Exception {
    int threads = 4;
    int each = 2000;
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger broken = new AtomicInteger();
    CountDownLatch all = new CountDownLatch(threads * each);
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    ExecutorService enders = Executors.newFixedThreadPool(2);
    try {
      for (int thread = 0; thread < threads; thread++) {
        AtomicInteger next = new AtomicInteger();
        pool.execute(() -> {
          for (int number = 0; number < each; number++) {
            int mine = number;
            if (number % 7 == 0) {
              turns.alone(end -> {
                broken.addAndGet(next.getAndIncrement() == mine ? 0 : 1);
                broken.addAndGet(inside.incrementAndGet() == 1 ? 0 : 1);
                enders.execute(() -> {
                  inside.decrementAndGet();
                  end.run();
                  all.countDown();
                });
              });
            } else {
              turns.beside(
                  end -> {
                    broken.addAndGet(next.getAndIncrement() == mine ? 0 : 1);
                    inside.addAndGet(1000);
                    inside.addAndGet(-1000);
                    end.run();
                    all.countDown();
                  },
                  () -> () -> {});
            }
          }
        });
      }
      assertThat(all.await(50, TimeUnit.SECONDS)).isTrue();
      assertThat(broken.get()).isZero();
    } finally {
      pool.shutdownNow();
      enders.shutdownNow();
    }
  }
}
