package dev.antipode.testing.conformance;

import static dev.antipode.testing.conformance.Checks.check;
import static dev.antipode.testing.conformance.Checks.checkEquals;

import dev.antipode.Antipode;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Policy;
import dev.antipode.Reading;
import dev.antipode.Settings;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.internal.diagnostics.history.Recorder;
import dev.antipode.testing.DryRunRecording;
import dev.antipode.testing.StoreUnderTest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;

/** Cases about reads that wait for what their scope depends on (BAR-50, BAR-51, SHIM-44, SHIM-47, SHIM-48). */
public interface OwnReadCases extends ConformanceCases {
  /** Runs so that reads are to be no older than this lineage, as a wrap's option or {@code reading(after)} says. */
  private static <T> T behind(Lineage lineage, boolean after, Supplier<T> work) {
    if (after) {
      try (Reading reading = Antipode.reading(lineage)) {
        check(reading.after().isPresent(), "it does not wait");
        return work.get();
      }
    }
    try (LineageScope opened = Antipode.scope(lineage)) {
      check(!opened.isClosed(), "it is closed");
      return work.get();
    }
  }

  private static void timeout(Duration timeout) {
    Antipode.configure(Settings.defaults().timeout(timeout));
  }

  /** Whatever may return data waits first, or is refused: no value is older than the scope (SHIM-44, BAR-50). */
  @Case(queues = false)
  default void unsureReads() {
    StoreUnderTest store = store();
    for (boolean after : new boolean[] {false, true}) {
      String key = store.newKey();
      check(store.judge(store.written(key, "0")).satisfied(), "no pass");
      int number = 0;
      for (Map.Entry<String, Function<String, Object>> each :
          store.reads(store.wrapClient(store.near(), store.replicas(), !after)).entrySet()) {
        String value = Integer.toString(++number);
        store.partition(store.near());
        Lineage lineage = store.written(key, value);
        timeout(store.brief());
        boolean isRefused = behind(lineage, after, () -> isRefused(each.getKey(), each.getValue(), key));
        store.heal(store.near());
        timeout(store.patience());
        if (!isRefused) {
          checkEquals(value, behind(lineage, after, () -> each.getValue().apply(key)), each.getKey());
        }
      }
    }
  }

  /** Return whether a read is refused altogether; fails where it returns though it cannot have waited. */
  private static boolean isRefused(String way, Function<String, Object> read, String key) {
    Object found;
    try {
      found = read.apply(key);
    } catch (ConfigurationException refused) {
      return true;
    } catch (BarrierTimeoutException | BarrierUnprovenException inVain) {
      return false;
    }
    throw new AssertionError(way + ": returned " + found + ", and the server has nothing newer");
  }

  /** A wait before a read ends by its deadline also where the server answers nothing (SHIM-47). */
  @Case(queues = false)
  default void readAtAFrozenServer() {
    StoreUnderTest store = store();
    Duration deadline = Duration.ofMillis(500);
    for (boolean after : new boolean[] {false, true}) {
      String key = store.newKey();
      Lineage known = store.written(key, "0");
      check(store.judge(known).satisfied(), "no pass");
      Object client = store.wrapClient(store.far(), store.replicas(), !after);
      Function<String, Object> read = store.reads(client).values().iterator().next();
      timeout(store.patience());
      check(behind(known, after, () -> read.apply(key)) != null, "it does not read");
      timeout(deadline);
      store.freeze(store.far());
      long began;
      Lineage lineage;
      try {
        lineage = store.written(key, "1");
        began = System.nanoTime();
        RuntimeException ended = behind(lineage, after, () -> Checks.thrown(
            () -> read.apply(key), BarrierTimeoutException.class, BarrierUnprovenException.class));
        check(ended != null, "it returned");
      } finally {
        store.thaw(store.far());
      }
      Duration took = Duration.ofNanos(System.nanoTime() - began);
      check(took.compareTo(deadline.plus(store.slack())) < 0, "a hang: " + took);
      timeout(store.patience());
      Object another = store.wrapClient(store.far(), store.replicas(), !after);
      Function<String, Object> again = store.reads(another).values().iterator().next();
      store.until(() -> "1".equals(behind(lineage, after, () -> valueOrNull(again, key))), "it answers again");
    }
  }

  private static Object valueOrNull(Function<String, Object> read, String key) {
    try {
      return read.apply(key);
    } catch (BarrierTimeoutException | BarrierUnprovenException out) { // the server may count as out for a moment
      return null;
    }
  }

  /** What shows a moment from before a write is refused behind it: waiting makes it no newer (SHIM-48). */
  @Case(queues = false)
  default void pastMoment() {
    StoreUnderTest store = store();
    for (boolean after : new boolean[] {false, true}) {
      String key = store.newKey();
      check(store.judge(store.written(key, "1")).satisfied(), "no pass");
      Object client = store.wrapClient(store.near(), store.replicas(), !after);
      try (StoreUnderTest.PastMoment past = store.pastMoment(client, key)) {
        Lineage lineage = store.written(key, "2");
        check(store.judge(lineage).satisfied(), "no pass");
        RuntimeException refused = behind(lineage, after, () -> Checks.thrown(
            past::fetch, BarrierUnprovenException.class, ConfigurationException.class));
        check(refused != null, "it returned");
        check(!(refused instanceof BarrierUnprovenException told) || told.code().equals("AP514"), refused.toString());
      }
    }
  }

  /** A lineage that names the store in another spelling is no pass for a read, unless the policies let it go on (BAR-51). */
  @Case(queues = false)
  default void aMisspeltStoreIsNoPassForARead() {
    StoreUnderTest store = store();
    String key = store.newKey();
    Lineage own = store.written(key, "v");
    check(store.judge(own).satisfied(), "no pass");
    String misspelt = store.name().toUpperCase(Locale.ROOT);
    Lineage lineage = Lineage.of(own.ofStore(store.name()).stream()
        .map(each -> new WriteId(misspelt, each.key(), each.version())).toList());
    for (boolean after : new boolean[] {false, true}) {
      Object client = store.wrapClient(store.near(), store.replicas(), !after);
      store.reads(client).forEach((way, read) -> {
        Settings enforced = Settings.defaults().mode(Mode.ENFORCE).timeout(store.patience());
        Antipode.configure(enforced.onUnproven(Policy.RAISE));
        RuntimeException refused = behind(lineage, after, () -> Checks.thrown(
            () -> read.apply(key), BarrierUnprovenException.class, ConfigurationException.class));
        if (refused instanceof BarrierUnprovenException told) {
          checkEquals("AP107", told.code(), way);
          checkEquals(UnprovenKind.MISSPELT, told.result().store(store.name()).kind(), way);
          check(told.getMessage().contains(misspelt) && told.getMessage().contains(store.name()), told.toString());
          checkEquals("v", read.apply(key), way + ", with nothing to wait for");
          Antipode.configure(enforced.onUnproven(Policy.PROCEED));
          checkEquals("v", behind(lineage, after, () -> read.apply(key)), way + ", where the policies let it go on");
          Antipode.configure(Settings.defaults().mode(Mode.DRY_RUN));
          checkEquals("v", behind(lineage, after, () -> read.apply(key)), way + ", in dry-run");
        }
      });
    }
  }

  /** Dry-run, a recorded history and {@code reading()} are told of each read (SHIM-54, SHIM-13, REC-12, HIST-28). */
  @Case(queues = false)
  default void aReadIsToldToEveryObserver(@TempDir Path folder) {
    StoreUnderTest store = store();
    String key = store.newKey();
    Lineage lineage = store.written(key, "v");
    check(store.judge(lineage).satisfied(), "no pass");
    Object client = store.wrapClient(store.near(), store.replicas(), false);
    Path history = folder.resolve("history");
    DryRunRecording recorded = new DryRunRecording(folder.resolve("records"));
    Antipode.configure(Antipode.settings().history(history.toString()));
    boolean isFirst = true;
    for (Map.Entry<String, Function<String, Object>> way : store.reads(client).entrySet()) {
      long counted = recorded.count("reads");
      long noted = reads(history);
      Lineage seen;
      try (LineageScope opened = Antipode.scope(lineage); Reading reading = Antipode.reading()) {
        checkEquals("v", way.getValue().apply(key), way.getKey());
        check(!opened.isClosed(), "it is closed");
        seen = reading.lineage();
      }
      boolean isRead = recorded.count("reads") == counted + 1; // others may write, as far as the shim knows
      check(isRead || !isFirst, way.getKey() + ": dry-run is not told, or more than once");
      isFirst = false;
      check(!seen.ofStore(store.name()).isEmpty() || !seen.isComplete(), way.getKey() + ": reading() is told nothing");
      check(!isRead || reads(history) == noted + 1, way.getKey() + ": a recorded history is told of it not once");
    }
    recorded.settled();
  }

  /** Return how many reads a recorded history has so far. */
  private static long reads(Path history) {
    Recorder.flush();
    try (Stream<Path> files = Files.exists(history) ? Files.list(history) : Stream.empty()) {
      long count = 0;
      for (Path file : files.toList()) {
        count += Files.readAllLines(file).stream().filter(line -> line.contains("\"kind\":\"read\"")).count();
      }
      return count;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
