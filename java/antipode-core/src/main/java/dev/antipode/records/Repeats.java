package dev.antipode.records;

import dev.antipode.Logs;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Reads that dry-run sends once more, to see whether they would have returned something else (REC-14). One thread does them,
 * one after the other; what comes while too many wait is not repeated.
 */
public final class Repeats {
  static final int MOST_WAITING = 100;
  private static final ThreadPoolExecutor THREAD =
      new ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, new ArrayBlockingQueue<>(MOST_WAITING), work -> {
        Thread thread = new Thread(work, "antipode-repeats");
        thread.setDaemon(true);
        thread.setContextClassLoader(Repeats.class.getClassLoader()); // not the request's, which it would keep
        return thread;
      });

  static {
    THREAD.allowCoreThreadTimeOut(true);
  }

  private Repeats() {}

  /** Has the thread do it; false where too many wait already. */
  public static boolean later(Runnable job) {
    try {
      THREAD.execute(() -> {
        try {
          job.run();
        } catch (RuntimeException | LinkageError error) {
          Logs.error("a dry-run record could not be made", error);
        }
      });
      return true;
    } catch (RejectedExecutionException full) {
      return false;
    }
  }

  /** What still waits is not done (tests). */
  static void forget() {
    THREAD.getQueue().clear();
  }
}
