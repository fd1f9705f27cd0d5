package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.EXCHANGE;
import static dev.antipode.rabbitmq.Region.done;
import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Key;
import dev.antipode.Keys;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Opaque;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.lab.Repository;
import dev.antipode.propagation.Messages;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** Python and Java share one broker: headers, marks, seals and taps are the same in both (PROP-17, SHIM-17). */
class PythonTest extends WithBroker {
  private static final WriteId POSITION = WriteId.position("blog", "8371ab90c2d4e6f1", Long.MIN_VALUE); // 2 to the 63
  private static final WriteId OBJECT = new WriteId("img", Key.of("cat.jpg ü~"), new Opaque("m"));

  private static final String PUBLISH = """
      import sys, antipode, antipode_rabbitmq, pika
      url, exchange, key, text, track = sys.argv[1:]
      connection = pika.BlockingConnection(pika.URLParameters(url))
      channel = antipode_rabbitmq.wrap(connection.channel(), store="notifications", track=track == "track")
      channel.confirm_delivery()
      with antipode.scope(antipode.Lineage.deserialize(text)) as scope:
          channel.basic_publish(exchange, key, b"python", pika.BasicProperties(headers={"mine": 1}))
          print(scope.lineage.serialize())
      connection.close()
      """;

  private static Lineage lineage() {
    return Lineage.of(POSITION, OBJECT);
  }

  @Test
  void javaReceivesWhatPythonSent_octetForOctet() {
    String queue = a.queue();
    String text = lineage().serialize();
    assertThat(Repository.runPython(PUBLISH, a.url(), "", queue, text, "")).isEqualTo(text);
    List<String> seen = new CopyOnWriteArrayList<>();
    List<Delivery> received = new CopyOnWriteArrayList<>();
    Channel channel = a.wrapped();
    done(() -> channel.basicConsume(queue, true, (tag, message) -> {
      seen.add(Antipode.serialize());
      received.add(message);
    }, tag -> {}));
    until(() -> !received.isEmpty(), "the message");
    assertThat(seen).containsExactly(text);
    assertThat(headersOf(received.get(0).getProperties())).isEqualTo(Map.of("mine", 1, Messages.HEADER, text));
  }

  /** The headers as the client of Python reads them: names, types and octets. */
  @Test
  void bothSendTheSameHeader_octetForOctet() {
    String ofPython = a.queue();
    String ofJava = a.queue();
    String text = lineage().serialize();
    Repository.runPython(PUBLISH, a.url(), "", ofPython, text, "");
    Channel channel = a.wrapped();
    try (LineageScope scope = Antipode.scope(lineage())) {
      done(() -> {
        channel.basicPublish("", ofJava, headers(Map.of("mine", 1)), octets("java"));
        return null;
      });
    }
    String said = Repository.runPython(
        """
        import sys, antipode, antipode_rabbitmq, pika
        from pika import data
        url, first, second = sys.argv[1:]
        channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
        for queue in (first, second):
            method, properties, body = channel.basic_get(queue, auto_ack=True)
            with antipode_rabbitmq.scope_of(method, properties) as scope:
                pieces = []
                data.encode_table(pieces, {name: properties.headers[name] for name in sorted(properties.headers)})
                print(body.decode(), scope.lineage.serialize(), b"".join(pieces).hex())
        """,
        a.url(), ofPython, ofJava);
    String[] lines = said.split("\n");
    assertThat(lines[0]).startsWith("python " + text);
    assertThat(lines[1].replaceFirst("java", "python")).isEqualTo(lines[0]);
  }

  @Test
  void javaWaitsForWhatPythonTracks() {
    Tap tap = b.tap(EXCHANGE);
    lab().verb(Region.KIND, "wait_probe", EXCHANGE);
    AntipodeRabbit.register(options().tap(tap));
    Lineage sent = Lineage.deserialize(Repository.runPython(PUBLISH, a.url(), EXCHANGE, "", "1", "track"));
    assertThat(sent.ofStore(STORE)).hasSize(1);
    assertThat(Antipode.barrier(BarrierOptions.defaults().lineage(sent)).satisfied()).isTrue();
  }

  @Test
  void pythonWaitsForWhatJavaTracks() throws Exception {
    Tap tap = b.tap(EXCHANGE);
    lab().verb(Region.KIND, "wait_probe", EXCHANGE);
    Channel channel = a.wrapped(options().track(true));
    channel.confirmSelect();
    String sent;
    try (LineageScope scope = Antipode.scope()) {
      channel.basicPublish(EXCHANGE, "", null, octets("one"));
      channel.basicPublish(EXCHANGE, "", messageId("order-7"), octets("two"));
      channel.waitForConfirmsOrDie(20_000);
      assertThat(scope.lineage().ofStore(STORE)).hasSize(2);
      sent = scope.lineage().serialize();
    }
    String said = Repository.runPython(
        """
        import sys, antipode, antipode_rabbitmq
        tap, text = sys.argv[1:]
        antipode_rabbitmq.register("notifications", tap=tap)
        result = antipode.barrier(antipode.Lineage.deserialize(text), timeout=20)
        print(result.satisfied, result.complete, len(antipode.Lineage.deserialize(text)))
        """,
        b.url() + "#" + tap.queue(), sent);
    assertThat(said).isEqualTo("True True 2");
  }

  @Test
  void sealedLineagesOfOnePassTheOther_TRUST_18() throws IOException {
    byte[] key = octets("0123456789abcdef");
    Path file = Files.createTempFile("antipode-keys-", ".txt");
    Files.writeString(file, "k " + Base64.getEncoder().encodeToString(key) + "\n");
    Antipode.configure(Settings.defaults().trust(Trust.KEY).keys(Keys.of(Map.of("k", key))));
    String queue = a.queue();
    Channel channel = a.wrapped();
    try (LineageScope scope = Antipode.scope(lineage())) {
      channel.basicPublish("", queue, null, octets("java"));
    }
    String said = Repository.runPython(
        """
        import sys, antipode, antipode_rabbitmq, pika
        url, queue, keys = sys.argv[1:]
        antipode.configure(keys_file=keys, trust="key")
        channel = antipode_rabbitmq.wrap(
            pika.BlockingConnection(pika.URLParameters(url)).channel(), store="notifications")
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        with antipode_rabbitmq.scope_of(method, properties, channel=channel, auto_ack=True) as scope:
            channel.basic_publish("", queue, b"python")
            print(scope.lineage.serialize())
        """,
        a.url(), queue, file.toString());
    Files.delete(file);
    assertThat(said).isEqualTo(lineage().serialize());
    try (LineageScope scope = AntipodeRabbit.scopeOf(channel, a.get(queue).getProps())) {
      assertThat(scope.lineage()).isEqualTo(lineage());
    }
  }
}
