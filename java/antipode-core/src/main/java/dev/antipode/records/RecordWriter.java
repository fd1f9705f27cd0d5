package dev.antipode.records;

import dev.antipode.Logs;
import dev.antipode.Settings;
import dev.antipode.configuration.ProcessSettings;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/**
 * Writes dry-run records to {@code <folder>/<host>-<pid>-<start>.jsonl}, from one thread, bounded and rotated; never an
 * exception to the application (REC-2).
 */
final class RecordWriter {
  static final int FILES_KEPT = 4;
  private static final int MOST_QUEUED = 10_000;
  private static final int MOST_TOGETHER = 1000;
  private static final long LOOK = TimeUnit.SECONDS.toNanos(1); // so soon it sees that `dueEvery` is another one
  private static volatile long dueEvery = TimeUnit.MINUTES.toNanos(1);

  private final BlockingQueue<Object> queue = new ArrayBlockingQueue<>(MOST_QUEUED); // records, and latches to count down
  private final String name;
  private final Supplier<List<Map<String, Object>>> due;
  private final AtomicLong dropped = new AtomicLong();
  private volatile Thread thread; // made once, under the lock of this

  /** A writer of a file of this name; {@code due} is what else is to be written, asked about once a minute. */
  RecordWriter(String name, Supplier<List<Map<String, Object>>> due) {
    this.name = name;
    this.due = due;
  }

  /** Whether it has ever got a record, or was started. */
  boolean isUsed() {
    return thread != null;
  }

  /** Begins to ask for what is due, before there is any record. */
  void start() {
    ensureThread();
  }

  /** Records that were not written: the queue was full, or the disk failed. */
  long dropped() {
    return dropped.get();
  }

  /** Queues a record; past the bound it is dropped and counted. */
  void put(Map<String, Object> record) {
    if (queue.offer(record)) {
      ensureThread();
    } else {
      drop("the disk is too slow", 1);
    }
  }

  /** Waits until what was put so far is on disk; false where that took longer. */
  boolean flush(long millis) {
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
        Thread writing = new Thread(this::run, "antipode-records");
        writing.setDaemon(true);
        writing.setContextClassLoader(RecordWriter.class.getClassLoader());
        writing.start();
        thread = writing;
      }
    }
  }

  private void run() {
    List<Object> batch = new ArrayList<>();
    long askedAt = System.nanoTime();
    while (true) {
      batch.clear();
      try {
        Object first = queue.poll(Math.min(askedAt + dueEvery - System.nanoTime(), LOOK), TimeUnit.NANOSECONDS);
        if (first != null) {
          batch.add(first);
        }
      } catch (InterruptedException spurious) { // nobody has a reason to
        continue;
      }
      if (System.nanoTime() - askedAt >= dueEvery) {
        askedAt = System.nanoTime();
        batch.addAll(whatIsDue());
      }
      queue.drainTo(batch, MOST_TOGETHER);
      write(batch);
      for (Object each : batch) {
        if (each instanceof CountDownLatch latch) {
          latch.countDown();
        }
      }
    }
  }

  private List<Map<String, Object>> whatIsDue() {
    try {
      return due.get();
    } catch (RuntimeException error) { // the thread goes on for the other records
      Logs.error("a dry-run summary could not be made", error);
      return List.of();
    }
  }

  @SuppressWarnings("unchecked") // what is no latch is a record
  private void write(List<Object> batch) {
    StringBuilder lines = new StringBuilder();
    int count = 0;
    for (Object each : batch) {
      if (each instanceof Map<?, ?> record) {
        lines.append(Json.line((Map<String, Object>) record)).append('\n');
        count++;
      }
    }
    if (count == 0) {
      return;
    }
    try {
      append(lines);
    } catch (IOException | RuntimeException error) { // a disk that is full, settings that cannot be read
      drop(error.toString(), count);
    }
  }

  private void append(CharSequence lines) throws IOException {
    Settings now = ProcessSettings.inForce();
    Path folder = Files.createDirectories(Path.of(now.records()));
    Path file = folder.resolve(name + ".jsonl");
    if (Files.exists(file) && Files.size(file) > now.recordsMaxMib() * 1024L * 1024L) {
      rotate(folder);
    }
    try (Writer out = Files.newBufferedWriter(
        file, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
      out.append(lines);
    }
  }

  /** {@code x.jsonl} becomes {@code x.1.jsonl}, and so on; four files are kept. */
  private void rotate(Path folder) throws IOException {
    for (int number = FILES_KEPT - 2; number >= 0; number--) {
      Path older = folder.resolve(name + (number == 0 ? "" : "." + number) + ".jsonl");
      if (Files.exists(older)) {
        Files.move(older, folder.resolve(name + "." + (number + 1) + ".jsonl"), StandardCopyOption.REPLACE_EXISTING);
      }
    }
  }

  /** Sets how often summaries are written; returns what it was, in nanoseconds (tests). */
  static long dueEvery(long nanos) {
    long before = dueEvery;
    dueEvery = nanos;
    return before;
  }

  private void drop(String why, int count) {
    dropped.addAndGet(count);
    Logs.warn("records", "dry-run records cannot be written: " + why + ".", "dropped");
  }
}
