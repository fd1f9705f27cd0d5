package dev.antipode.internal.diagnostics.history;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.WriteId;
import dev.antipode.propagation.HeaderCarrier;
import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.RequestScope;
import dev.antipode.testing.AntipodeIsolated;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Requests and responses in a recorded history: what every filter, interceptor and client hook is made of (HIST-30). */
@ExtendWith(AntipodeIsolated.class)
class RecordedMessagesTest {
  private static final WriteId BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042);
  private static final WriteId AFTER = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57);
  private static final String HEADER = "antipode-lineage";

  @TempDir Path temporary;
  private RecordedLines lines;

  @BeforeEach
  void record() {
    lines = new RecordedLines(temporary.resolve("history"));
  }

  private static Map<String, String> request() {
    Map<String, String> headers = new HashMap<>();
    Propagation.injectRequest(HeaderCarrier.of(headers), "b");
    return headers;
  }

  private static Map<String, String> answer(Map<String, String> given) {
    Map<String, String> headers = new HashMap<>(given);
    Propagation.injectResponse(HeaderCarrier.of(headers));
    return headers;
  }

  private static RequestScope arrived(Map<String, String> headers) {
    return Propagation.extractRequest(HeaderCarrier.of(headers), "10.0.0.1");
  }

  private static List<String> messages(List<JsonNode> lines) {
    return lines.stream().map(line -> line.get("message").asText()).toList();
  }

  @Test
  void thereAndBack() {
    try (LineageScope mine = Antipode.scope()) {
      Antipode.append(BEFORE);
      Map<String, String> response;
      try (RequestScope theirs = arrived(request())) {
        assertThat(theirs.scope().lineage().extensions()).isEmpty();
        Antipode.append(AFTER);
        response = answer(Map.of());
      }
      Lineage said = Lineage.deserialize(response.get(HEADER));
      assertThat(said.ids()).containsExactly(AFTER); // what is new, as ever
      Propagation.extractResponse(HeaderCarrier.of(response), "b");
      assertThat(mine.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
      assertThat(mine.lineage().extensions()).isEmpty();
    }
    List<JsonNode> sent = lines.of("send");
    assertThat(messages(lines.of("receive"))).isEqualTo(messages(sent));
    assertThat(sent.stream().map(line -> line.get("lineage").asText()))
        .containsExactly(Lineage.of(BEFORE).serialize(), Lineage.of(BEFORE, AFTER).serialize());
    assertThat(sent.stream().map(line -> line.get("scope").asText().replaceAll(" .*", "")))
        .containsExactly("root", "request");
  }

  /** Of a response, which says only what is new to its caller: the whole lineage, also where nothing is new. */
  @Test
  void aResponseThatAddsNothing() {
    try (LineageScope mine = Antipode.scope()) {
      Antipode.append(BEFORE);
      Map<String, String> response;
      try (RequestScope theirs = arrived(request())) {
        response = answer(Map.of());
      }
      assertThat(Lineage.deserialize(response.get(HEADER)).isEmpty()).isTrue();
      Propagation.extractResponse(HeaderCarrier.of(response), "b");
      assertThat(mine.lineage()).isEqualTo(Lineage.of(BEFORE));
    }
    assertThat(lines.of("send")).hasSize(2)
        .allMatch(line -> line.get("lineage").asText().equals(Lineage.of(BEFORE).serialize()));
    assertThat(lines.of("receive")).hasSize(2);
  }

  /** Where nothing may leave, or there is nothing, no message is recorded. */
  @Test
  void whatDoesNotLeaveIsNotRecorded() {
    try (LineageScope empty = Antipode.scope()) {
      assertThat(request()).isEmpty();
    }
    try (RequestScope nothing = arrived(Map.of())) {
      assertThat(answer(Map.of())).isEmpty();
    }
    try (RequestScope shared = arrived(Map.of())) {
      assertThat(answer(Map.of("cache-control", "public"))).doesNotContainKey(HEADER);
    }
    try (LineageScope mine = Antipode.scope()) {
      Antipode.append(BEFORE);
      Map<String, String> headers = new HashMap<>();
      Propagation.injectRequest(HeaderCarrier.of(headers), "api.example.com");
      assertThat(headers).isEmpty();
    }
    Antipode.configure(Antipode.settings().mode(Mode.OFF));
    try (RequestScope off = arrived(Map.of())) {
      Antipode.append(AFTER);
      assertThat(answer(Map.of())).isEmpty();
    }
    assertThat(lines.of("send")).isEmpty();
  }
}
