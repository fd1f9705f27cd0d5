package dev.antipode.testing;

import dev.antipode.Antipode;
import dev.antipode.Mode;
import dev.antipode.internal.diagnostics.dryrun.Counts;
import dev.antipode.internal.diagnostics.dryrun.Records;
import dev.antipode.internal.diagnostics.dryrun.Repeats;
import dev.antipode.internal.engine.FollowRegistry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** Dry-run into a folder, with every read followed, and what it recorded: for tests of shims, waited for, never slept for. */
public final class DryRunRecording {
  private final Path folder;

  /** Switches dry-run on, in a test that isolates Antipode. */
  public DryRunRecording(Path folder) {
    this.folder = folder;
    Antipode.configure(Antipode.settings().mode(Mode.DRY_RUN).records(folder.toString()).sample(1.0));
  }

  /** The records so far of these kinds, or all: lines of JSON, in the order in which they were written. */
  public List<String> lines(String... kinds) {
    if (!Records.flush(Duration.ofSeconds(20).toMillis())) {
      throw new AssertionError("the records were not written in time");
    }
    List<String> found = new ArrayList<>();
    try (Stream<Path> files = Files.exists(folder) ? Files.list(folder) : Stream.empty()) {
      for (Path file : files.filter(each -> each.toString().endsWith(".jsonl")).toList()) {
        Files.readAllLines(file).stream().filter(line -> kinds.length == 0 || isOf(line, kinds)).forEach(found::add);
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return found;
  }

  private static boolean isOf(String line, String... kinds) {
    return Stream.of(kinds).anyMatch(kind -> line.contains("\"kind\":\"" + kind + "\""));
  }

  /** Waits for so many reads that were behind or stale. */
  public List<String> findings(int count) {
    until(() -> lines("behind", "stale").size() >= count, count + " findings; there are " + lines());
    List<String> found = lines("behind", "stale");
    if (found.size() > count) {
      throw new AssertionError("more than " + count + " findings: " + found);
    }
    return found;
  }

  /** Waits until each read that is followed has been looked at: what comes after that is too late for it. */
  public void looked() {
    until(FollowRegistry::allLookedAt, "a look at each server");
  }

  /** Waits until nothing is followed or read again any more. */
  public void settled() {
    until(() -> FollowRegistry.count() == 0 && Repeats.nothingWaits(), "an end to what is followed");
  }

  /** How many there were of what summaries count. */
  public long count(String what) {
    return Counts.total(what);
  }

  /** Waits until so many of what summaries count are counted: some are only behind their reply. */
  public void awaitCount(String what, long count) {
    until(() -> count(what) == count, count + " " + what + "; there are " + count(what));
  }

  private static void until(BooleanSupplier holds, String what) {
    long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
    while (!holds.getAsBoolean()) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("in vain: " + what);
      }
      LockSupport.parkNanos(Duration.ofMillis(5).toNanos());
    }
  }
}
