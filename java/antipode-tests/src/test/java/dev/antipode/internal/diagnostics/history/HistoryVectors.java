package dev.antipode.internal.diagnostics.history;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Line;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Step;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Strand;
import dev.antipode.internal.propagation.MessageNames;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** What to do with the vectors of recorded histories. */
public final class HistoryVectors {
  /** By the name of their file. */
  public static final Map<String, Consumer<JsonNode>> KINDS = Map.of(
      "history-key", HistoryVectors::key,
      "history-messages", HistoryVectors::messages,
      "history-order", HistoryVectors::order);

  private HistoryVectors() {}

  private static byte[] octets(JsonNode vector, String field) {
    return HexFormat.of().parseHex(vector.get(field).asText());
  }

  private static void key(JsonNode vector) {
    assertThat(HistoryKey.spelled(Key.of(octets(vector, "key_hex")))).isEqualTo(vector.get("spelled").asText());
  }

  private static void messages(JsonNode vector) {
    MessageNames.NamedLineage taken = MessageNames.take(Lineage.deserialize(vector.get("text").asText()));
    List<String> wanted = new ArrayList<>();
    vector.get("messages").forEach(each -> wanted.add(each.asText()));
    assertThat(taken.messages()).isEqualTo(wanted);
    assertThat(taken.lineage().serialize()).isEqualTo(vector.get("rest").asText());
  }

  private static void order(JsonNode vector) {
    List<Map<String, Object>> put = new ArrayList<>();
    HistoryOrder order = new HistoryOrder("p", "t", put::add);
    Map<String, Strand> strands = new HashMap<>();
    Map<String, Step> open = new HashMap<>();
    Set<String> given = new HashSet<>();
    for (JsonNode step : vector.get("steps")) {
      if (step.has("begin")) {
        open.put(step.get("begin").asText(), order.begin(strand(strands, step, "scope"), null));
      } else if (step.has("end")) {
        List<Line> told = new ArrayList<>();
        step.get("as").forEach(kind -> told.add(new Line(kind.asText(), Map.of())));
        order.end(open.get(step.get("end").asText()), told, step.path("certain").asBoolean(true));
      } else if (step.has("instant")) {
        given.add(step.get("message").asText());
        order.instant(
            strand(strands, step, "scope"), step.get("instant").asText(), null, step.get("message").asText());
      } else {
        order.joined(strand(strands, step, "join"), strand(strands, step, "into"));
      }
    }
    Map<String, String> names = new HashMap<>();
    List<List<String>> lines = new ArrayList<>();
    for (Map<String, Object> line : put) {
      String message = (String) line.getOrDefault("message", "");
      if (!message.isEmpty() && !given.contains(message)) {
        message = names.computeIfAbsent(message, first -> "m" + (names.size() + 1));
      }
      lines.add(List.of((String) line.get("kind"), (String) line.get("scope"), message));
    }
    List<List<String>> wanted = new ArrayList<>();
    vector.get("lines").forEach(
        line -> wanted.add(List.of(line.get(0).asText(), line.get(1).asText(), line.get(2).asText())));
    assertThat(lines).isEqualTo(wanted);
  }

  private static Strand strand(Map<String, Strand> strands, JsonNode step, String field) {
    return strands.computeIfAbsent(step.get(field).asText(), name -> new Strand(name, ""));
  }
}
