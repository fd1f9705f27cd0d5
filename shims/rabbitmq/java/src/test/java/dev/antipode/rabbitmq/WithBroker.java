package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import dev.antipode.Antipode;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.Opaque;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.lab.Lab;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.propagation.Messages;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tests on one broker, whose virtual hosts are the two regions, and which no test spoils; it ends with this process. */
@ExtendWith(AntipodeIsolated.class)
abstract class WithBroker {
  static final String STORE = Region.EXCHANGE;
  static final WriteId WRITE = WriteId.position("blog", "0-1", 42);
  static final String TEXT = "1~blog..0-1.42";
  static final String ACL = "1~acl..0-1.7";

  private static Lab shared;

  Region a;
  Region b;
  CapturedLogs logs;

  static synchronized Lab lab() {
    if (shared == null) {
      shared = Lab.of(Region.KIND).set("rabbitmq.one_broker", "true").up();
      Runtime.getRuntime().addShutdownHook(new Thread(shared::close));
    }
    return shared;
  }

  @BeforeEach
  @Timeout(180) // the first one starts a broker
  final void begin() {
    lab().heal();
    a = new Region(lab(), "a");
    b = new Region(lab(), "b");
    logs = new CapturedLogs();
    Antipode.configure(Settings.defaults().timeout(Duration.ofSeconds(20)));
  }

  @AfterEach
  final void end() {
    logs.close();
    a.close();
    b.close();
  }

  static RabbitOptions options() {
    return RabbitOptions.named(STORE);
  }

  static AMQP.BasicProperties headers(Map<String, Object> headers) {
    return new AMQP.BasicProperties.Builder().headers(headers).build();
  }

  static AMQP.BasicProperties stamped(String text) {
    return headers(Map.of(Messages.HEADER, text));
  }

  static AMQP.BasicProperties messageId(String id) {
    return new AMQP.BasicProperties.Builder().messageId(id).build();
  }

  /** The headers as they came, texts as such. */
  static Map<String, Object> headersOf(AMQP.BasicProperties properties) {
    if (properties.getHeaders() == null) {
      return Map.of();
    }
    Map<String, Object> plain = new HashMap<>();
    properties.getHeaders().forEach((name, value) ->
        plain.put(name, value instanceof com.rabbitmq.client.LongString text ? text.toString() : value));
    return plain;
  }

  /** The headers with which a message arrives that is published so. */
  Map<String, Object> headersAfter(Channel channel, String queue, AMQP.BasicProperties properties) {
    Region.done(() -> {
      channel.basicPublish("", queue, properties, octets("body"));
      return null;
    });
    return headersOf(a.get(queue).getProps());
  }

  static byte[] octets(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static Lineage message(String mark) {
    return Lineage.of(new WriteId(STORE, Key.of("x"), new Opaque(mark)));
  }

  /** A replicated store whose replica in B gets nothing until it is healed: what messages depend on. */
  static final class Blog {
    final MemoryStore store = MemoryStore.named("blog").regions("a", "b");
    final MemoryClient inA = store.client("a");
    final MemoryClient inB = store.client("b");
  }
}
