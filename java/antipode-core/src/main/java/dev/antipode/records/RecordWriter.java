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

/**
 * Writes dry-run records to {@code <folder>/<host>-<pid>-<start>.jsonl}, from one thread, bounded and rotated; never an
 * exception to the application (REC-2).
 */
final class RecordWriter {
  static final int FILES_KEPT = 4;
  private static final int MOST_QUEUED = 10_000;
  private static final int MOST_TOGETHER = 1000;

  private final BlockingQueue<Object> queue = new ArrayBlockingQueue<>(MOST_QUEUED); // records, and latches to count down
  private final String name;
  private final AtomicLong dropped = new AtomicLong();
  private Thread thread;

  /** A writer of a file of this name. */
  RecordWriter(String name) {
    this.name = name;
  }

  /** Whether it has ever got a record. */
  synchronized boolean isUsed() {
    return thread != null;
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

  private synchronized void ensureThread() {
    if (thread == null) {
      thread = new Thread(this::run, "antipode-records");
      thread.setDaemon(true);
      thread.setContextClassLoader(RecordWriter.class.getClassLoader());
      thread.start();
    }
  }

  private void run() {
    List<Object> batch = new ArrayList<>();
    while (true) {
      batch.clear();
      try {
        batch.add(queue.take());
      } catch (InterruptedException spurious) { // nobody has a reason to
        continue;
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
    } catch (IOException | RuntimeException error) {
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

  private void drop(String why, int count) {
    dropped.addAndGet(count);
    Logs.warn("records", "dry-run records cannot be written: " + why + ".", "dropped");
  }
}
