package dev.antipode.internal.diagnostics.history;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.Antipode;
import dev.antipode.Settings;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** A history recorded into a folder, in a test that isolates Antipode; each line has the schema's shape (HIST-1 to HIST-4). */
final class RecordedLines {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path folder;

  /** Begins to record. */
  RecordedLines(Path folder) {
    this.folder = folder;
    Antipode.configure(Settings.defaults().history(folder.toString()));
  }

  Path folder() {
    return folder;
  }

  List<Path> files() {
    try (Stream<Path> files = Files.exists(folder) ? Files.list(folder) : Stream.empty()) {
      return files.sorted().toList();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Every line; the recording has ended. */
  List<JsonNode> all() {
    Recorder.forget();
    List<JsonNode> lines = new ArrayList<>();
    Set<String> ids = new HashSet<>();
    try {
      JsonNode schema = schema();
      for (Path file : files()) {
        for (String text : Files.readAllLines(file)) {
          JsonNode line = JSON.readTree(text);
          check(line, schema);
          assertThat(ids.add(line.get("id").asText())).as("another id: " + text).isTrue();
          lines.add(line);
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return lines;
  }

  private static JsonNode schema() throws IOException {
    Path spec = Path.of(System.getProperty("antipode.spec"));
    return JSON.readTree(spec.resolve("schemas/history.schema.json").toFile());
  }

  /** No field that the schema does not have, and all that it wants of this kind. */
  private static void check(JsonNode line, JsonNode schema) {
    line.fieldNames().forEachRemaining(
        name -> assertThat(schema.get("properties").has(name)).as(name + " in " + line).isTrue());
    schema.get("required").forEach(name -> assertThat(line.has(name.asText())).as(line.toString()).isTrue());
    for (JsonNode rule : schema.get("allOf")) {
      JsonNode kinds = rule.get("if").get("properties").get("kind");
      String kind = '"' + line.get("kind").asText() + '"';
      if (kinds.toString().contains(kind)) {
        for (JsonNode name : rule.get("then").path("required")) {
          assertThat(line.has(name.asText())).as(name + " in " + line).isTrue();
        }
      }
    }
    if (line.get("kind").asText().equals("read")) {
      assertThat(line.has("reads_from") || line.has("version") || line.has("value")).as(line.toString()).isTrue();
    }
  }

  List<JsonNode> of(String kind) {
    return all().stream().filter(line -> line.get("kind").asText().equals(kind)).toList();
  }

  List<String> kinds() {
    return all().stream().map(line -> line.get("kind").asText()).toList();
  }

  List<String> reasons() {
    return of("gap").stream().map(line -> line.get("reason").asText()).toList();
  }
}
