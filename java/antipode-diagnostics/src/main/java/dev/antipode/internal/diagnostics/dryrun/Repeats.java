package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.shim.Logs;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * Reads that dry-run sends once more, to see whether they would have returned something else (REC-14). One thread does them,
 * one after the other; what comes while too many wait is not repeated.
 */
public final class Repeats {
  static final int MOST_WAITING = 100;
  private static final long LAST_MILLIS = 250; // the end of the process waits so long for the one that is under way
  private static final ThreadPoolExecutor THREAD =
      new ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, new ArrayBlockingQueue<>(MOST_WAITING), work -> {
        Thread thread = new Thread(null, work, "antipode-repeats", 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(Repeats.class.getClassLoader()); // not the request's, which it would keep
        return thread;
      });
  private static final Set<Repeat> UNTOLD = ConcurrentHashMap.newKeySet(); // those that wait, and the one under way

  static {
    THREAD.allowCoreThreadTimeOut(true);
  }

  private Repeats() {}

  /** One of them. {@code over} is called once: with what was found, or with false where nobody asks. */
  private static final class Repeat implements Runnable {
    private final Callable<Boolean> differs;
    private final Consumer<Boolean> over;
    private final AtomicBoolean isTold = new AtomicBoolean();
    private final CountDownLatch ended = new CountDownLatch(1);

    Repeat(Callable<Boolean> differs, Consumer<Boolean> over) {
      this.differs = differs;
      this.over = over;
    }

    @Override
    public void run() {
      boolean found;
      try {
        found = differs.call();
      } catch (Exception | LinkageError error) { // the store's own: nothing is confirmed
        found = false;
      }
      tell(found);
    }

    void tell(boolean found) {
      if (!isTold.compareAndSet(false, true)) {
        return;
      }
      try {
        over.accept(found);
      } catch (RuntimeException | LinkageError error) {
        Logs.error("AP601", "a dry-run record could not be made", error);
      } finally {
        UNTOLD.remove(this);
        ended.countDown();
      }
    }
  }

  /**
   * Has the thread read again, and calls {@code over} once, with whether the result was another one; with false where that
   * failed, or where the process ends first. False where too many wait already: then nothing is called.
   */
  public static boolean later(Callable<Boolean> differs, Consumer<Boolean> over) {
    Repeat repeat = new Repeat(differs, over);
    UNTOLD.add(repeat);
    try {
      THREAD.execute(repeat);
      return true;
    } catch (RejectedExecutionException | OutOfMemoryError full) { // the latter: the system has no thread left for it
      UNTOLD.remove(repeat);
      return false;
    }
  }

  /** Whether nothing is to be read again, or is just now. */
  public static boolean nothingWaits() {
    return UNTOLD.isEmpty();
  }

  /** The process ends: nothing is confirmed of what still waits (REC-15). The one that is under way gets a moment. */
  static void giveUpAll() {
    List<Runnable> waiting = new ArrayList<>();
    THREAD.getQueue().drainTo(waiting);
    waiting.forEach(each -> ((Repeat) each).tell(false));
    for (Repeat last : UNTOLD) {
      try {
        last.ended.await(LAST_MILLIS, TimeUnit.MILLISECONDS);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
      last.tell(false);
    }
  }

  /** What still waits is not done, and nobody is told of it (tests). */
  static void forget() {
    THREAD.getQueue().clear();
    UNTOLD.forEach(each -> each.isTold.set(true));
    UNTOLD.clear();
  }
}
