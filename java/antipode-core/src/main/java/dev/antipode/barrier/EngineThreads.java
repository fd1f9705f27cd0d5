package dev.antipode.barrier;

import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The few daemon threads that futures need: one for their deadlines, and some to complete them. */
final class EngineThreads {
  private static final int MOST = Math.max(2, Runtime.getRuntime().availableProcessors());
  private static final AtomicInteger NUMBERS = new AtomicInteger();

  /** A thread on which nothing may block: it completes the futures of others. */
  static final class Completing extends Thread {
    Completing(Runnable work) {
      super(null, work, "antipode-futures-" + NUMBERS.incrementAndGet(), 0, false); // no inherited thread-locals
      setDaemon(true);
      setContextClassLoader(EngineThreads.class.getClassLoader());
    }
  }

  /** What completes futures where the call names no executor. */
  static final Executor FUTURES = futures();

  /** What ends waits at their deadlines. */
  static final ScheduledThreadPoolExecutor TIMER = timer();

  private EngineThreads() {}

  private static Executor futures() {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(MOST, MOST, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), Completing::new);
    pool.allowCoreThreadTimeOut(true);
    return work -> {
      try {
        pool.execute(work);
      } catch (OutOfMemoryError error) { // no thread is to be had: whoever ends the wait completes it (BAR-32, BAR-61)
        work.run();
      }
    };
  }

  private static ScheduledThreadPoolExecutor timer() {
    ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, work -> {
      Thread thread = new Completing(work);
      thread.setName("antipode-deadlines");
      return thread;
    });
    timer.setRemoveOnCancelPolicy(true);
    return timer;
  }
}
