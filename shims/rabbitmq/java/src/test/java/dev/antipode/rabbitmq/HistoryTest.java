package dev.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.Channel;
import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.internal.diagnostics.history.Recorder;
import dev.antipode.lab.HistoryLines;
import dev.antipode.propagation.Messages;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Messages of RabbitMQ in a recorded history (HIST-30, HIST-31). */
class HistoryTest extends WithBroker {
  @TempDir
  Path temporary;

  private Path history;

  @BeforeEach
  void record() {
    history = temporary.resolve("history");
    Antipode.configure(Antipode.settings().history(history.toString()));
  }

  /** The lines of a kind, each as its scope's kind and its message. */
  private List<String> lines(String kind) {
    Recorder.forget();
    return HistoryLines.of(history, kind).stream()
        .map(line -> line.get("scope").asText().replaceAll(" .*", "") + " " + line.path("message").asText())
        .toList();
  }

  private static String nameIn(Map<String, Object> headers) {
    return headers.get(Messages.HEADER).toString().replaceFirst(".*~_\\.msg\\.", "");
  }

  @Test
  void aMessageIsSentAndReceivedByItsName() throws IOException {
    Channel channel = a.wrapped();
    Map<String, Object> headers;
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      headers = headersAfter(channel, a.queue(), null);
    }
    try (LineageScope message = Antipode.messageScope(headers)) {
      assertThat(message.lineage().serialize()).isEqualTo(TEXT);
    }
    assertThat(lines("send")).containsExactly("root " + nameIn(headers));
    assertThat(lines("receive")).containsExactly("message " + nameIn(headers));
    assertThat(lines("gap")).isEmpty();
  }

  /** The lineage of another message whose headers are published again comes into the sender's thread. */
  @Test
  void aMessageOfAnother() throws IOException {
    Channel channel = a.wrapped();
    Map<String, Object> headers;
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WRITE);
      headers = headersAfter(channel, a.queue(), stamped(ACL + "~_.msg.abc"));
    }
    List<String> sent = lines("send");
    assertThat(sent).hasSize(2);
    assertThat(sent.get(0)).startsWith("message "); // from its scope to this one
    assertThat(sent.get(1)).isEqualTo("root " + nameIn(headers));
    assertThat(lines("receive")).containsExactly("message abc", sent.get(0).replace("message ", "root "));
  }
}
