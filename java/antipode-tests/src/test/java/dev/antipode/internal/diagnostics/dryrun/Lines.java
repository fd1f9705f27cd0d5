package dev.antipode.internal.diagnostics.dryrun;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.Antipode;
import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.internal.engine.FollowRegistry;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** Dry-run into a folder, with every read followed, and what came of it; each line of the schema's shape (REC-1). */
public final class Lines {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final JsonNode SCHEMA = schema();

  private final Path folder;

  /** Switches dry-run on, in a test that isolates Antipode. */
  public Lines(Path folder) {
    this.folder = folder;
    Antipode.configure(
        Settings.defaults().mode(Mode.DRY_RUN).records(folder.toString()).region("b").sample(1.0));
  }

  private static JsonNode schema() {
    try {
      Path file = Path.of("spec", "schemas", "record.schema.json");
      for (Path at = Path.of("").toAbsolutePath(); at != null; at = at.getParent()) {
        if (Files.exists(at.resolve(file))) {
          return JSON.readTree(at.resolve(file).toFile());
        }
      }
      throw new IllegalStateException("no " + file);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** The records so far of these kinds, or all. */
  public List<JsonNode> of(String... kinds) {
    assertThat(Records.flush(20_000)).isTrue();
    List<JsonNode> found = new ArrayList<>();
    try (Stream<Path> files = Files.exists(folder) ? Files.list(folder) : Stream.empty()) {
      for (Path file : files.sorted().toList()) {
        for (String line : Files.readAllLines(file)) {
          JsonNode record = JSON.readTree(line);
          check(record);
          if (kinds.length == 0 || Arrays.asList(kinds).contains(record.get("kind").asText())) {
            found.add(record);
          }
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return found;
  }

  /** The schema's kinds, and what it requires of each; no field that it does not have. */
  private static void check(JsonNode record) {
    Set<String> known = new TreeSet<>();
    SCHEMA.get("properties").fieldNames().forEachRemaining(known::add);
    Set<String> fields = new TreeSet<>();
    record.fieldNames().forEachRemaining(fields::add);
    assertThat(known).as(record.toString()).containsAll(fields);
    SCHEMA.get("required").forEach(field -> assertThat(fields).as(record.toString()).contains(field.asText()));
    String kind = record.get("kind").asText();
    boolean isKnown = false;
    for (JsonNode each : SCHEMA.get("allOf")) {
      JsonNode of = each.get("if").get("properties").get("kind");
      if (kind.equals(of.path("const").asText()) || of.path("enum").toString().contains('"' + kind + '"')) {
        isKnown = true;
        each.get("then").get("required")
            .forEach(field -> assertThat(fields).as(record.toString()).contains(field.asText()));
      }
    }
    assertThat(isKnown).as(kind).isTrue();
    if (record.has("site")) {
      assertThat(record.get("site").asText()).matches("^(.+:[1-9][0-9]*|other)$");
    }
    assertThat(record.toString()).doesNotContain("private"); // REC-8
  }

  /** The one record of a read that was behind or stale, once it is there. */
  public JsonNode finding() {
    until(() -> !of("behind", "stale").isEmpty());
    assertThat(of("behind", "stale")).hasSize(1);
    return of("behind", "stale").get(0);
  }

  /** Waits until nothing is followed any more. */
  public static void settled() {
    until(() -> FollowRegistry.count() == 0);
  }

  /** Waits for this, with a deadline. */
  public static void until(BooleanSupplier holds) {
    long deadline = System.nanoTime() + 30_000_000_000L;
    while (!holds.getAsBoolean()) {
      assertThat(System.nanoTime()).as("in time").isLessThan(deadline);
      LockSupport.parkNanos(2_000_000);
    }
  }
}
