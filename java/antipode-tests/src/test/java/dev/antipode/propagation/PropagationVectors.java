package dev.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Lineage;
import dev.antipode.MalformedLineageException;
import dev.antipode.internal.propagation.Gate;
import dev.antipode.internal.trust.Direction;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.propagation.Carriers.Formats;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** What to do with the vectors of propagation. */
public final class PropagationVectors {
  /** By the name of their file. */
  public static final Map<String, Consumer<JsonNode>> KINDS = Map.of(
      "propagation-extract", PropagationVectors::extract,
      "propagation-place", PropagationVectors::place,
      "propagation-cache", PropagationVectors::cache,
      "propagation-names", PropagationVectors::name);

  private static final Map<String, String> NAMES = Map.of(
      "http-header", Carriers.LINEAGE_HEADER,
      "baggage-key", Carriers.BAGGAGE_KEY,
      "grpc-metadata", Carriers.LINEAGE_HEADER,
      "message-header", Messages.HEADER,
      "jms-property", Messages.JMS_PROPERTY,
      "jaeger-header", Carriers.JAEGER_HEADER);

  private PropagationVectors() {}

  private static String textOrNull(JsonNode json) {
    return json.isNull() || json.isMissingNode() ? null : json.asText();
  }

  private static void extract(JsonNode vector) {
    List<Header> headers = new ArrayList<>();
    vector.get("headers").forEach(line -> headers.add(new Header(line.get(0).asText(), line.get(1).asText())));
    String expected = textOrNull(vector.get("text"));
    try (RequestScope request = Propagation.extractRequest(new Lines(headers), "127.0.0.1")) {
      assertThat(request.scope().lineage().serialize()).isEqualTo(expected == null ? "1" : expected);
    }
    int malformed = 0;
    for (String text : Carriers.read(headers).texts()) {
      try {
        Lineage.deserialize(text);
      } catch (MalformedLineageException e) {
        malformed++;
      }
    }
    assertThat(malformed).isEqualTo(vector.get("malformed").asInt());
    List<String> rest = headers.stream()
        .filter(header -> header.name().equalsIgnoreCase("baggage"))
        .flatMap(header -> Arrays.stream(Carriers.withoutMember(header.value()).split(",", -1)))
        .map(String::strip)
        .filter(member -> !member.isEmpty())
        .toList();
    List<String> wanted = new ArrayList<>();
    vector.get("rest").forEach(member -> wanted.add(member.asText()));
    assertThat(rest).isEqualTo(wanted);
  }

  private static void place(JsonNode vector) {
    Map<String, String> headers = new HashMap<>();
    headers.put("baggage", textOrNull(vector.get("baggage")));
    headers.put("uber-trace-id", textOrNull(vector.path("uber_trace_id")));
    headers.put("uberctx-antipode", textOrNull(vector.path("uberctx_antipode")));
    Lineage lineage = Lineage.deserialize(vector.get("text").asText());
    String text = Gate.give(lineage, TrustSettings.inForce(), Direction.REQUEST_OUT, null);
    Formats formats = new Formats(vector.get("baggage_propagator").asBoolean(), vector.path("jaeger_propagator").asBoolean());
    headers.putAll(Carriers.rewrite(headers::get, text, formats));
    assertThat(headers.get("baggage")).isEqualTo(textOrNull(vector.get("out").get("baggage")));
    assertThat(headers.get("antipode-lineage")).isEqualTo(textOrNull(vector.get("out").get("antipode_lineage")));
    assertThat(headers.get("uberctx-antipode")).isEqualTo(textOrNull(vector.get("out").path("uberctx_antipode")));
  }

  private static void cache(JsonNode vector) {
    List<Header> headers = new ArrayList<>();
    vector.get("headers").forEach(line -> headers.add(new Header(line.get(0).asText(), line.get(1).asText())));
    assertThat(SharedCaches.mayKeep(headers, vector.path("method").asText("GET"), vector.path("status").asInt(200)))
        .isEqualTo(vector.get("shared").asBoolean());
  }

  private static void name(JsonNode vector) {
    assertThat(NAMES.get(vector.get("carrier").asText())).isEqualTo(vector.get("name").asText());
  }

  /** Headers that are only read. */
  private record Lines(List<Header> lines) implements HeaderCarrier {
    @Override
    public void set(String name, String value) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void remove(String name) {
      throw new UnsupportedOperationException();
    }
  }
}
