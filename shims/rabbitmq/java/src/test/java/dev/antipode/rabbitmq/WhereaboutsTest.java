package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.done;
import static dev.antipode.rabbitmq.Region.get;
import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Address;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Verdict;
import dev.antipode.propagation.Messages;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A connection that the client makes anew at the next address of its list: what it consumes then has arrived there, and not
 * where it was before (SHIM-17). Two ways to one broker stand for two brokers.
 */
class WhereaboutsTest extends WithBroker {
  private Link before;
  private Link after;
  private Connection connection;
  private String queue;

  @BeforeEach
  void connect() throws Exception {
    List<Link> links = List.of(b.link(), b.link());
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(new URI(b.url()));
    factory.setNetworkRecoveryInterval(100);
    connection = factory.newConnection(
        links.stream().map(link -> new Address("127.0.0.1", link.port())).toList());
    before = links.get(connection.getPort() == links.get(0).port() ? 0 : 1);
    after = links.get(connection.getPort() == links.get(0).port() ? 1 : 0);
    queue = b.queue();
  }

  @AfterEach
  void disconnect() {
    connection.abort(2000);
  }

  /** The connection goes over to the other address. */
  private void move(Channel channel) {
    before.cut();
    until(() -> connection.isOpen() && channel.isOpen() && connection.getPort() == after.port(), "the recovery");
    before.heal();
  }

  private Channel wrapped(RabbitOptions options) {
    Channel plain = done(connection::createChannel);
    return AntipodeRabbit.wrap(plain, options);
  }

  /** A tap of the broker behind one of the ways, by which no message comes. */
  private Tap empty(Link link) {
    return Tap.of(b.url(link), b.tap(b.exchange("fanout")).queue());
  }

  /** A tracked message, from a process that is not this one. */
  private void publish() {
    String mark = UUID.randomUUID().toString();
    Map<String, Object> lineage = Map.of(Messages.HEADER, message(mark).serialize());
    b.publish("", queue, new AMQP.BasicProperties.Builder().messageId(mark).headers(lineage).build(), "");
  }

  /** What a barrier says of the message whose scope this is. */
  private static Verdict verdict() {
    return Antipode.barrier(BarrierOptions.defaults()
            .timeout(Duration.ofMillis(500)).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED))
        .store(STORE).verdict();
  }

  private List<Verdict> consume(Channel channel) {
    List<Verdict> verdicts = new CopyOnWriteArrayList<>();
    done(() -> channel.basicConsume(queue, true, (tag, message) -> verdicts.add(verdict()), tag -> {}));
    return verdicts;
  }

  @Test
  void whatIsConsumedAfterwardsHasNotArrivedWhereTheConnectionWas() {
    Channel channel = done(() -> AntipodeRabbit.wrap(connection, options().tap(empty(before))).createChannel());
    List<Verdict> verdicts = consume(channel);
    publish();
    until(() -> verdicts.size() == 1, "the first message");
    move(channel);
    publish();
    until(() -> verdicts.size() == 2, "the second message");
    assertThat(verdicts.get(0)).isEqualTo(Verdict.VISIBLE);
    assertThat(verdicts.get(1)).isNotEqualTo(Verdict.VISIBLE);
  }

  @Test
  void whatCameBeforeHasNotArrivedWhereTheConnectionIsNow() {
    Channel channel = wrapped(options().tap(empty(after)));
    publish();
    GetResponse pulled = get(channel, queue, false);
    List<Delivery> pushed = new CopyOnWriteArrayList<>();
    String consumer = done(() -> channel.basicConsume(queue, false, (tag, message) -> pushed.add(message), tag -> {}));
    publish();
    until(() -> pushed.size() == 1, "the second message");
    done(() -> {
      channel.basicCancel(consumer); // it would get them again
      return null;
    });
    Delivery first = pushed.get(0);
    move(channel);
    AntipodeRabbit.handle(channel, pulled, false, () -> assertThat(verdict()).isNotEqualTo(Verdict.VISIBLE));
    AntipodeRabbit.handle(channel, first, false, () -> assertThat(verdict()).isNotEqualTo(Verdict.VISIBLE));
    try (LineageScope scope = AntipodeRabbit.scopeOf(channel, pulled.getProps())) {
      assertThat(verdict()).isNotEqualTo(Verdict.VISIBLE);
    }
  }

  /** The nodes of a cluster, as far as the client knows: the broker that this process uses is another one now. */
  @Test
  void withoutATapTheBrokerIsWhereTheConnectionIs() {
    Channel channel = wrapped(options());
    List<Verdict> verdicts = consume(channel);
    publish();
    until(() -> verdicts.size() == 1, "the first message");
    move(channel);
    publish();
    until(() -> verdicts.size() == 2, "the second message");
    assertThat(verdicts).containsExactly(Verdict.VISIBLE, Verdict.VISIBLE);
  }
}
