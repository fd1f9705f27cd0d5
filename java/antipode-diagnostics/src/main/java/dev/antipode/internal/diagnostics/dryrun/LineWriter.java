package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.shim.Logs;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Writes lines of JSON from one thread of its own, bounded; never an exception to the application (REC-2, HIST-24). */
public abstract class LineWriter {
  private static final int MOST_QUEUED = 10_000;
  private static final int MOST_TOGETHER = 1000;

  /** How many files of the size {@code records_max_mib} a process may have. */
  public static final int FILES_KEPT = 4;

  /** So soon it sees what else is due, in nanoseconds. */
  protected static final long LOOK = TimeUnit.SECONDS.toNanos(1);

  private final BlockingQueue<Object> queue = new ArrayBlockingQueue<>(MOST_QUEUED); // lines, and latches to count down
  private final AtomicLong dropped = new AtomicLong();
  private volatile Thread thread; // made once, under the lock of this

  /** A writer that has nothing to write yet. */
  protected LineWriter() {}

  /** Writes these lines, at least one; in the writer's thread. */
  protected abstract void append(List<Map<String, Object>> lines) throws IOException;

  /** Says that lines were not written. */
  protected abstract void warn(String why);

  /** What else is to be written now; in the writer's thread. */
  protected List<Map<String, Object>> due() {
    return List.of();
  }

  /** For how long nothing else will be due, in nanoseconds. */
  protected long patience() {
    return LOOK;
  }

  /** Whether it has ever got a line, or was started. */
  public final boolean isUsed() {
    return thread != null || !queue.isEmpty();
  }

  /** Begins to ask for what is due, before there is any line. */
  public final void start() {
    ensureThread();
  }

  /** Lines that were not written: the queue was full, or the disk failed. */
  public final long dropped() {
    return dropped.get();
  }

  /** Queues a line; past the bound it is dropped and counted. */
  public final void put(Map<String, Object> line) {
    if (queue.offer(line)) {
      ensureThread();
    } else {
      drop("the disk is too slow", 1);
    }
  }

  /** Waits until what was put so far is on disk; false where that took longer. */
  public final boolean flush(long millis) {
    CountDownLatch written = new CountDownLatch(1);
    try {
      if (!queue.offer(written, millis, TimeUnit.MILLISECONDS)) {
        return false;
      }
      ensureThread();
      return written.await(millis, TimeUnit.MILLISECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private void ensureThread() {
    if (thread != null) {
      return;
    }
    synchronized (this) {
      if (thread == null) {
        Thread writing = new Thread(null, this::run, "antipode-records", 0, false);
        writing.setDaemon(true);
        writing.setContextClassLoader(LineWriter.class.getClassLoader());
        try {
          writing.start();
          thread = writing;
        } catch (OutOfMemoryError error) { // never the application's; the next line tries again (BAR-61)
          warn("no thread could be started to write them (" + error.getMessage() + ")");
        }
      }
    }
  }

  private void run() {
    List<Object> batch = new ArrayList<>();
    while (true) {
      batch.clear();
      try {
        Object first = queue.poll(pause(), TimeUnit.NANOSECONDS);
        if (first != null) {
          batch.add(first);
        }
        batch.addAll(whatIsDue());
        queue.drainTo(batch, MOST_TOGETHER);
        write(batch);
      } catch (InterruptedException spurious) { // nobody has a reason to
        continue;
      } catch (Throwable error) { // our own fault: the thread goes on for the other lines (BAR-61)
        count(batch.size());
      }
      for (Object each : batch) {
        if (each instanceof CountDownLatch latch) {
          latch.countDown();
        }
      }
    }
  }

  private long pause() {
    try {
      return patience();
    } catch (Throwable error) { // our own fault, too; without any pause it would spin
      return LOOK;
    }
  }

  private List<Map<String, Object>> whatIsDue() {
    try {
      return due();
    } catch (RuntimeException error) { // the thread goes on for the other lines
      Logs.error("AP601", "a dry-run summary could not be made", error);
      return List.of();
    }
  }

  @SuppressWarnings("unchecked") // what is no latch is a line
  private void write(List<Object> batch) {
    List<Map<String, Object>> lines = new ArrayList<>(batch.size());
    for (Object each : batch) {
      if (each instanceof Map<?, ?> line) {
        lines.add((Map<String, Object>) line);
      }
    }
    if (lines.isEmpty()) {
      return;
    }
    try {
      append(lines);
    } catch (IOException | RuntimeException error) { // a disk that is full, settings that cannot be read
      drop(error.toString(), lines.size());
    }
  }

  /** Counts so many lines that were not written, and says why. */
  protected final void drop(String why, int count) {
    count(count);
    warn(why);
  }

  /** Counts so many lines that were not written. */
  protected final void count(int count) {
    dropped.addAndGet(count);
  }
}
