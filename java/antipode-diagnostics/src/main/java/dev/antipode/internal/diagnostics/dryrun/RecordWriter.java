package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.Settings;
import dev.antipode.internal.base.Json;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.shim.Logs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Writes dry-run records to {@code <folder>/<host>-<pid>-<start>.jsonl}, rotated (REC-2). */
final class RecordWriter extends LineWriter {
  private static volatile long dueEvery = TimeUnit.MINUTES.toNanos(1);

  private PrivateFile file;
  private final Supplier<List<Map<String, Object>>> due;
  private long askedAt = System.nanoTime(); // in the writer's thread

  /** A writer of a file of this name; {@code due} is what else is to be written, asked about once a minute. */
  RecordWriter(String name, Supplier<List<Map<String, Object>>> due) {
    this.file = new PrivateFile(Path.of(name + ".jsonl"));
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
    file = file.in(Path.of(now.records()));
    if (file.size() > now.recordsMaxMib() * 1024L * 1024L) {
      rotate(file.path());
    }
    StringBuilder lines = new StringBuilder();
    records.forEach(record -> lines.append(Json.line(record)).append('\n'));
    file.append(lines);
  }

  /** {@code x.jsonl} becomes {@code x.1.jsonl}, and so on; four files are kept. */
  private static void rotate(Path path) throws IOException {
    String name = path.getFileName().toString().replaceFirst("\\.jsonl$", "");
    for (int number = FILES_KEPT - 2; number >= 0; number--) {
      Path older = path.resolveSibling(name + (number == 0 ? "" : "." + number) + ".jsonl");
      if (Files.exists(older)) {
        Files.move(older, path.resolveSibling(name + "." + (number + 1) + ".jsonl"), StandardCopyOption.REPLACE_EXISTING);
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
    Logs.warn("AP601", "records", "dry-run records cannot be written: " + why + ".", "dropped");
  }
}
