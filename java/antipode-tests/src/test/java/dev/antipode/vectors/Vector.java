package dev.antipode.vectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.Opaque;
import dev.antipode.Ordered;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.internal.model.Names;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** One case of a file in {@code spec/vectors}, and the shapes that its README names. */
record Vector(String kind, JsonNode json) {
  private static final Path FOLDER = Path.of(System.getProperty("antipode.spec"), "vectors");

  /** Every file of the folder, by its kind. */
  static Map<String, Path> files() throws IOException {
    try (Stream<Path> files = Files.list(FOLDER)) {
      return files
          .filter(file -> file.toString().endsWith(".json"))
          .collect(Collectors.toMap(file -> file.getFileName().toString().replace(".json", ""), file -> file));
    }
  }

  static List<Vector> read(Path file) throws IOException {
    JsonNode all = new ObjectMapper().readTree(file.toFile());
    String kind = all.get("kind").asText();
    if (all.get("vectors").asInt() != 1 || !file.getFileName().toString().equals(kind + ".json")) {
      throw new AssertionError(file + " is not of the form that this runner knows");
    }
    List<Vector> cases = list(all.get("cases")).map(each -> new Vector(kind, each)).toList();
    if (cases.isEmpty()) {
      throw new AssertionError(file + " has no cases");
    }
    return cases;
  }

  static Stream<JsonNode> list(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false);
  }

  static List<String> texts(JsonNode array) {
    return list(array).map(JsonNode::asText).toList();
  }

  String id() {
    return json.get("id").asText();
  }

  boolean has(String field) {
    return json.has(field);
  }

  JsonNode get(String field) {
    return json.get(field);
  }

  /** A text; null where the vector has null or no such field. */
  String text(String field) {
    return json.hasNonNull(field) ? json.get(field).asText() : null;
  }

  boolean flag(String field) {
    return json.get(field).asBoolean();
  }

  int number(String field) {
    return json.get(field).asInt();
  }

  byte[] octets(String field) {
    return HexFormat.of().parseHex(text(field));
  }

  Lineage lineage(String field) {
    return Lineage.deserialize(text(field));
  }

  // The common shapes

  private static String name(JsonNode shape, String field) {
    return shape.has(field + "_hex")
        ? Names.text(HexFormat.of().parseHex(shape.get(field + "_hex").asText()))
        : shape.get(field).asText();
  }

  static WriteId entry(JsonNode shape) {
    Key key = shape.has("key_hex")
        ? Key.of(HexFormat.of().parseHex(shape.get("key_hex").asText()))
        : Key.of(shape.get("key").asText());
    Version version = shape.has("counter")
        ? Ordered.of(name(shape, "epoch"), shape.get("counter").asText())
        : new Opaque(name(shape, "mark"));
    return new WriteId(name(shape, "store"), key, version);
  }

  static List<WriteId> entries(JsonNode array) {
    return list(array).map(Vector::entry).toList();
  }

  static Lineage lineage(JsonNode shape) {
    Lineage lineage = Lineage.of(entries(shape.get("entries")));
    if (!shape.get("incomplete").isEmpty()) {
      lineage = lineage.markedIncomplete(texts(shape.get("incomplete")));
    }
    if (shape.get("anywhere").asBoolean()) {
      lineage = lineage.markedIncomplete();
    }
    for (String extension : texts(shape.get("extensions"))) { // together they may be longer than a text may be
      lineage = lineage.union(Lineage.deserialize("1~" + extension));
    }
    return lineage;
  }
}
