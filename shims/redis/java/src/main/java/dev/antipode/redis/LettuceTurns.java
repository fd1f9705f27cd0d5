package dev.antipode.redis;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Whose turn it is on a connection that many threads share. Most commands have theirs beside one another, and a read that
 * waits keeps its own until it will not be sent again. What no read of ours may come into has the connection alone: the
 * application's WATCH and MULTI, the end of its transaction, a batch that waits. Nobody waits with a thread, and the
 * commands of one thread keep their order.
 */
final class LettuceTurns {
  private record Waiting(Consumer<Runnable> work, boolean alone) {}

  // Under the lock of this:
  private final Deque<Waiting> waiting = new ArrayDeque<>();
  private int beside;
  private boolean isAlone;
  private boolean isServing;

  /**
   * A turn beside others: at once, or after what came before and wants to be alone.
   *
   * @param work is given what ends the turn; it is to run that once, on any thread
   * @param whileItWaits called before this returns where the turn does not come at once; what it gives is run after the work
   */
  void beside(Consumer<Runnable> work, Supplier<Runnable> whileItWaits) {
    synchronized (this) {
      if (isServing || isAlone || !waiting.isEmpty()) {
        waiting.add(new Waiting(then(work, whileItWaits.get()), false));
        return;
      }
      beside++;
    }
    begin(new Waiting(work, false));
  }

  /** A turn alone: when all turns before are over; later ones wait for its end. */
  void alone(Consumer<Runnable> work) {
    alone(work, () -> () -> {});
  }

  /** The same; {@code whileItWaits} is as for one beside others. */
  void alone(Consumer<Runnable> work, Supplier<Runnable> whileItWaits) {
    synchronized (this) {
      boolean waits = isServing || isAlone || beside > 0 || !waiting.isEmpty();
      waiting.add(new Waiting(waits ? then(work, whileItWaits.get()) : work, true));
    }
    serve();
  }

  private static Consumer<Runnable> then(Consumer<Runnable> work, Runnable last) {
    return end -> {
      try {
        work.accept(end);
      } finally {
        last.run();
      }
    };
  }

  private void begin(Waiting next) {
    AtomicBoolean isOver = new AtomicBoolean();
    Runnable end = () -> {
      if (isOver.compareAndSet(false, true)) {
        ended(next.alone());
      }
    };
    boolean isBegun = false;
    try {
      next.work().accept(end);
      isBegun = true;
    } finally {
      if (!isBegun) { // it threw: nobody else would end it
        end.run();
      }
    }
  }

  private void ended(boolean alone) {
    synchronized (this) {
      if (alone) {
        isAlone = false;
      } else {
        beside--;
      }
    }
    serve();
  }

  /** Gives turns, in order, while there may be one. One thread at a time does. */
  private void serve() {
    synchronized (this) {
      if (isServing) {
        return;
      }
      isServing = true;
    }
    while (true) {
      Waiting next;
      synchronized (this) {
        next = waiting.peek();
        if (next == null || isAlone || (next.alone() && beside > 0)) {
          isServing = false;
          return;
        }
        waiting.poll();
        if (next.alone()) {
          isAlone = true;
        } else {
          beside++;
        }
      }
      try {
        begin(next);
      } catch (RuntimeException | Error error) { // the work's own to tell; whoever comes behind has its turn all the same
        Thread thread = Thread.currentThread();
        thread.getUncaughtExceptionHandler().uncaughtException(thread, error);
      }
    }
  }
}
