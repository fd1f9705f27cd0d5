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
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Writes dry-run records to {@code <folder>/<host>-<pid>-<start>.jsonl}, rotated (REC-2). */
final class RecordWriter extends LineWriter {
  private static volatile long dueEvery = TimeUnit.MINUTES.toNanos(1);

  private final String name;
  private final Supplier<List<Map<String, Object>>> due;
  private long askedAt = System.nanoTime(); // in the writer's thread

  /** A writer of a file of this name; {@code due} is what else is to be written, asked about once a minute. */
  RecordWriter(String name, Supplier<List<Map<String, Object>>> due) {
    this.name = name;
    this.due = due;
  }

  @Override
  protected long patience() {
    return Math.min(askedAt + dueEvery - System.nanoTime(), LOOK);
  }

  @Override
  protected List<Map<String, Object>> due() {
    if (System.nanoTime() - askedAt < dueEvery) {
      return List.of();
    }
    askedAt = System.nanoTime();
    return due.get();
  }

  @Override
  protected void append(List<Map<String, Object>> records) throws IOException {
    Settings now = ProcessSettings.inForce();
    Path folder = Files.createDirectories(Path.of(now.records()));
    Path file = folder.resolve(name + ".jsonl");
    if (Files.exists(file) && Files.size(file) > now.recordsMaxMib() * 1024L * 1024L) {
      rotate(folder);
    }
    StringBuilder lines = new StringBuilder();
    records.forEach(record -> lines.append(Json.line(record)).append('\n'));
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

  @Override
  protected void warn(String why) {
    Logs.warn("records", "dry-run records cannot be written: " + why + ".", "dropped");
  }
}
