package dev.antipode.lab;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** The lines of recorded histories, of whichever languages; who records in this process has to end that before. */
public final class HistoryLines {
  private static final ObjectMapper JSON = new ObjectMapper();

  private HistoryLines() {}

  /** All of a folder's files, in the order of their names. */
  public static List<JsonNode> of(Path folder) {
    List<JsonNode> found = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.sorted().toList()) {
        for (String text : Files.readAllLines(file)) {
          found.add(JSON.readTree(text));
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return found;
  }

  /** Those of one kind. */
  public static List<JsonNode> of(Path folder, String kind) {
    return of(folder).stream().filter(line -> line.get("kind").asText().equals(kind)).toList();
  }
}
