package dev.antipode.redis;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;

/** What another thread is to do, and the application waits for. */
final class Handover {
  private Handover() {}

  /** Has a thread of the JDK's do it. */
  static void to(Runnable work) {
    to(CompletableFuture.completedFuture(null).defaultExecutor(), work);
  }

  /** Has one of these threads do it, once; where none is to be had it is done here (BAR-61). */
  static void to(Executor threads, Runnable work) {
    AtomicBoolean isTaken = new AtomicBoolean();
    Runnable once = () -> {
      if (isTaken.compareAndSet(false, true)) {
        work.run();
      }
    };
    try {
      threads.execute(once);
    } catch (OutOfMemoryError error) { // a pool may have it in its queue all the same
      once.run();
    }
  }
}
