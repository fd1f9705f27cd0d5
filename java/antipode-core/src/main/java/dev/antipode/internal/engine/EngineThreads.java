package dev.antipode.internal.engine;

import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Antipode's own threads: those that ask, one for the deadlines of futures, and some to complete futures. */
final class EngineThreads {
  private static final int MOST = Math.max(2, Runtime.getRuntime().availableProcessors());
  private static final AtomicInteger NUMBERS = new AtomicInteger();

  /**
   * A daemon thread on which nothing may block: it may complete the futures of others (BAR-31). It keeps nothing of its
   * starter's: no class loader, no inherited thread-locals.
   */
  static final class EngineThread extends Thread {
    EngineThread(Runnable work, String name) {
      super(null, work, name, 0, false);
      setDaemon(true);
      setContextClassLoader(EngineThreads.class.getClassLoader());
    }
  }

  /** What completes futures where the call names no executor. */
  static final Executor FUTURES = futures();

  /** What ends waits at their deadlines. */
  static final ScheduledThreadPoolExecutor TIMER = timer();

  private EngineThreads() {}

  /**
   * Starts a thread of Antipode's own.
   *
   * @throws OutOfMemoryError where the process may have no more threads
   */
  static Thread start(Runnable work, String name) {
    Thread thread = new EngineThread(work, name);
    thread.start();
    return thread;
  }

  /**
   * Starts the thread of deadlines where there is none: no wait begins without it.
   *
   * @throws OutOfMemoryError where the process may have no more threads
   */
  static void ensureTimer() {
    TIMER.prestartCoreThread();
  }

  private static Executor futures() {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(MOST, MOST, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), work ->
            new EngineThread(work, "antipode-futures-" + NUMBERS.incrementAndGet()));
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
    ScheduledThreadPoolExecutor timer =
        new ScheduledThreadPoolExecutor(1, work -> new EngineThread(work, "antipode-deadlines"));
    timer.setRemoveOnCancelPolicy(true);
    return timer;
  }
}
