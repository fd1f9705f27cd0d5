package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.done;
import static dev.antipode.rabbitmq.Region.get;
import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.ConfigurationException;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.RedeliverException;
import dev.antipode.Settings;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code redeliver}: the message goes back after a delay, as a failed delivery, while the channel does its work. */
class RedeliverTest extends WithBroker {
  private Blog blog;

  @BeforeEach
  void makeBlog() {
    blog = new Blog();
  }

  private interface OnMessage {
    void take(Channel channel, Delivery message) throws IOException;
  }

  /** A message that depends on a write which does not come to B. */
  private void publish(String queue, String body) {
    blog.store.freeze("b");
    Channel channel = AntipodeRabbit.wrap(a.own(), STORE);
    try (LineageScope scope = Antipode.scope()) {
      blog.inA.set("post:42", "hi");
      done(() -> {
        channel.basicPublish("", queue, null, octets(body));
        return null;
      });
    }
  }

  private static void barrier() {
    Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofMillis(50)).onTimeout(Policy.REDELIVER));
  }

  private static void ack(Channel channel, Delivery message) throws IOException {
    channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
  }

  private static RabbitOptions after(int millis) {
    return options().redeliverDelay(Duration.ofMillis(millis));
  }

  private Channel consume(String queue, RabbitOptions options, boolean autoAck, OnMessage callback) {
    return consume(a.wrapped(options), queue, autoAck, callback);
  }

  private static Channel consume(Channel channel, String queue, boolean autoAck, OnMessage callback) {
    return done(() -> {
      channel.basicQos(10);
      channel.basicConsume(queue, autoAck, (tag, message) -> callback.take(channel, message), tag -> {});
      return channel;
    });
  }

  @Test
  void aMessageGoesBackAndComesAgain_BAR_45() {
    String queue = a.queue();
    publish(queue, "42");
    List<Long> tries = new CopyOnWriteArrayList<>();
    List<Boolean> again = new CopyOnWriteArrayList<>();
    List<String> read = new CopyOnWriteArrayList<>();
    consume(queue, after(200), false, (channel, message) -> {
      tries.add(System.nanoTime());
      again.add(message.getEnvelope().isRedeliver());
      barrier();
      read.add(blog.inB.get("post:42"));
      ack(channel, message);
    });
    until(() -> tries.size() >= 3, "the third try");
    blog.store.heal("b");
    until(() -> !read.isEmpty(), "success");
    assertThat(read).containsExactly("hi");
    assertThat(again.subList(0, 3)).containsExactly(false, true, true);
    for (int number = 1; number < 3; number++) {
      assertThat(tries.get(number) - tries.get(number - 1)).isGreaterThan(Duration.ofMillis(190).toNanos());
    }
    until(() -> a.count(queue) == 0, "the acknowledgement");
    assertThat(logs.text()).contains("a message of notifications goes back to its queue in 0.2 s");
  }

  /** A quorum queue counts each message that goes back, and dead-letters it past its limit. */
  @Test
  void poisonLimitsHold_BAR_45() {
    String dead = a.queue();
    String queue = a.queue(Map.of(
        "x-queue-type", "quorum",
        "x-delivery-limit", 2,
        "x-dead-letter-exchange", "",
        "x-dead-letter-routing-key", dead));
    publish(queue, "42");
    List<Object> counts = new CopyOnWriteArrayList<>();
    consume(queue, after(50), false, (channel, message) -> {
      counts.add(((Number) message.getProperties().getHeaders().getOrDefault("x-delivery-count", 0)).intValue());
      barrier();
    });
    GetResponse found = a.get(dead);
    assertThat(counts).containsExactly(0, 1, 2);
    assertThat(found.getBody()).isEqualTo(octets("42"));
    Map<?, ?> death = (Map<?, ?>) ((List<?>) found.getProps().getHeaders().get("x-death")).get(0);
    assertThat(death.get("reason")).hasToString("delivery_limit");
    assertThat((String) headersOf(found.getProps()).get("antipode-lineage"))
        .as("the lineage goes to the dead-letter queue as well").startsWith("1~blog..");
  }

  @Test
  void otherMessagesAreConsumedDuringTheDelay() {
    String queue = a.queue();
    List<String> seen = new CopyOnWriteArrayList<>();
    publish(queue, "waits");
    a.publish("", queue, null, "passes");
    consume(queue, after(500), false, (channel, message) -> {
      seen.add(new String(message.getBody()));
      barrier();
      ack(channel, message);
    });
    until(() -> seen.contains("passes"), "both");
    assertThat(seen).containsExactly("waits", "passes");
    blog.store.heal("b");
    until(() -> seen.size() == 3, "the first again");
  }

  /** What the barrier says in a callback after {@code act}. */
  private String refusal(OnMessage act, boolean autoAck) {
    String queue = a.queue();
    publish(queue, "42");
    List<String> said = new CopyOnWriteArrayList<>();
    Channel channel = consume(queue, options(), autoAck, (same, message) -> {
      act.take(same, message);
      try {
        barrier();
      } catch (ConfigurationException error) {
        said.add(error.getMessage());
      }
    });
    until(() -> !said.isEmpty(), "the error");
    assertThat(channel.isOpen()).isTrue();
    return said.get(0);
  }

  @Test
  void whereAMessageCannotGoBackTheBarrierSaysSo_BAR_45() {
    assertThat(refusal((channel, message) -> {}, true)).contains("autoAck");
    assertThat(refusal(RedeliverTest::ack, false)).contains("acknowledged");
    assertThat(refusal((channel, message) -> channel.basicAck(0, true), false)).contains("acknowledged");
    assertThat(refusal(
            (channel, message) -> channel.basicReject(message.getEnvelope().getDeliveryTag(), false), false))
        .contains("rejected");
    assertThat(refusal(
            (channel, message) -> channel.basicNack(message.getEnvelope().getDeliveryTag(), false, false), false))
        .contains("rejected");
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(RedeliverTest::barrier)
          .isInstanceOf(ConfigurationException.class).hasMessageContaining("message");
    }
  }

  @Test
  void afterTheCallbackNothingCanGoBack() {
    String queue = a.queue();
    publish(queue, "42");
    List<LineageScope> scopes = new CopyOnWriteArrayList<>();
    consume(queue, options(), false, (channel, message) -> scopes.add(LineageScope.current()));
    until(() -> !scopes.isEmpty() && scopes.get(0).isClosed(), "its end");
    until(() -> !scopes.get(0).delivery().canRedeliver(), "it is settled");
  }

  /** {@code multiple} would acknowledge the message that is to come again. */
  @Test
  void anAcknowledgementOfSeveralGivesBackWhatWaitsAmongThem() {
    String queue = a.queue();
    List<String> seen = new CopyOnWriteArrayList<>();
    publish(queue, "first");
    a.publish("", queue, null, "second");
    consume(queue, after(30_000), false, (channel, message) -> {
      String body = new String(message.getBody());
      seen.add(body);
      if (body.equals("first") && !message.getEnvelope().isRedeliver()) {
        barrier();
      }
      channel.basicAck(message.getEnvelope().getDeliveryTag(), true);
    });
    until(() -> seen.size() == 3, "all three");
    assertThat(seen).containsExactly("first", "second", "first");
    until(() -> a.count(queue) == 0, "the acknowledgement");
  }

  /** Between the end of a callback and the time when its message waits to go back, as seen from another thread. */
  @Test
  void anAcknowledgementOfSeveralAtTheCallbacksEndLosesNothing() throws IOException {
    String queue = a.queue();
    publish(queue, "first");
    a.publish("", queue, null, "second");
    Channel channel = a.wrapped(after(30_000));
    GetResponse first = get(channel, queue, false);
    GetResponse second = get(channel, queue, false);
    Handler acknowledging = new Handler() {
      @Override
      public void publish(LogRecord line) {
        if (line.getMessage().contains("goes back to its queue")) {
          done(() -> {
            channel.basicAck(second.getEnvelope().getDeliveryTag(), true);
            return null;
          });
        }
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    };
    Logger logger = Logger.getLogger("dev.antipode");
    logger.addHandler(acknowledging);
    try {
      assertThat(AntipodeRabbit.handle(channel, first, false, RedeliverTest::barrier)).isFalse();
    } finally {
      logger.removeHandler(acknowledging);
    }
    GetResponse again = get(channel, queue, false);
    assertThat(again.getBody()).isEqualTo(octets("first"));
    assertThat(again.getEnvelope().isRedeliver()).isTrue();
    channel.basicAck(again.getEnvelope().getDeliveryTag(), false);
    assertThat(channel.isOpen()).isTrue();
  }

  /** PROP-36: before the message has gone back, and when it has; who handles it learns that it goes back. */
  @ParameterizedTest
  @ValueSource(ints = {0, 60_000})
  void anAcknowledgementBehindIsRefused(int delay) throws IOException {
    String queue = a.queue();
    publish(queue, "42");
    Channel channel = a.wrapped(after(delay));
    GetResponse message = get(channel, queue, false);
    assertThat(AntipodeRabbit.handle(channel, message, false, RedeliverTest::barrier)).isFalse();
    assertThatThrownBy(() -> channel.basicAck(message.getEnvelope().getDeliveryTag(), false))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("would be lost");
    if (delay > 0) {
      channel.abort();
    }
    until(() -> a.count(queue) == 1, "the message");
  }

  /** PROP-36: it is none of those that the application still has, and the broker knows it no longer. */
  @Test
  void aMessageThatIsHandledBehindItsAcknowledgementIsNotAcknowledgedAgain() throws IOException {
    String queue = a.queue();
    publish(queue, "42");
    publish(queue, "43");
    Channel channel = a.wrapped(after(60_000));
    GetResponse first = get(channel, queue, false);
    assertThat(AntipodeRabbit.handle(channel, first, false, RedeliverTest::barrier)).isFalse();
    GetResponse second = get(channel, queue, false);
    channel.basicAck(second.getEnvelope().getDeliveryTag(), false);
    assertThat(AntipodeRabbit.handle(channel, second, false, () -> { })).isTrue();
    channel.basicAck(0, true);
    until(() -> a.count(queue) == 1, "the first is back");
    assertThat(get(channel, queue, true).getEnvelope().isRedeliver()).isTrue();
  }

  @Test
  void pulledMessagesGoBackToo() throws IOException {
    String queue = a.queue();
    publish(queue, "42");
    Channel channel = a.wrapped(after(100));
    List<String> reached = new CopyOnWriteArrayList<>();
    boolean handled = AntipodeRabbit.handle(channel, get(channel, queue, false), false, () -> {
      barrier();
      reached.add("behind the barrier");
    });
    assertThat(handled).isFalse();
    assertThat(reached).isEmpty();
    GetResponse second = get(channel, queue, false);
    assertThat(second.getEnvelope().isRedeliver()).isTrue();
    assertThatThrownBy(() -> AntipodeRabbit.handle(channel, second, false, () -> {
      throw new IOException("own");
    })).hasMessage("own");
    channel.basicNack(second.getEnvelope().getDeliveryTag(), false, true);
    GetResponse third = get(channel, queue, true);
    assertThatThrownBy(() -> AntipodeRabbit.handle(channel, third, true, RedeliverTest::barrier))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("autoAck");
    assertThatThrownBy(() -> AntipodeRabbit.handle(channel, third, true, () -> {
      throw new RedeliverException("by hand, with nothing to give back", null, null);
    })).isInstanceOf(RedeliverException.class);
  }

  @Test
  void aFutureThatIsJoinedGivesTheMessageBackToo() {
    String queue = a.queue();
    publish(queue, "42");
    Channel channel = a.wrapped(after(100));
    boolean handled = AntipodeRabbit.handle(channel, get(channel, queue, false), false, () -> Antipode.barrierAsync(
        BarrierOptions.defaults().timeout(Duration.ofMillis(50)).onTimeout(Policy.REDELIVER)).join());
    assertThat(handled).isFalse();
    assertThat(get(channel, queue, true).getEnvelope().isRedeliver()).isTrue();
  }

  @Test
  void aChannelThatEndsMeanwhileGivesTheMessageBackItself() throws Exception {
    String queue = a.queue();
    publish(queue, "42");
    List<Boolean> seen = new CopyOnWriteArrayList<>();
    Channel channel = consume(queue, after(300), false, (same, message) -> {
      seen.add(true);
      barrier();
    });
    until(() -> !seen.isEmpty(), "the try");
    channel.close();
    until(() -> a.count(queue) == 1, "the message");
  }

  /** With a connection that the client makes anew, the message comes again by itself, and once. */
  @Test
  void aRecoveredConnectionConsumesOn() {
    String queue = a.queue();
    publish(queue, "42");
    Link link = a.link();
    ConnectionFactory factory = new ConnectionFactory();
    factory.setNetworkRecoveryInterval(100);
    Channel plain = done(() -> a.connection(a.url(link), factory).createChannel());
    Channel channel = AntipodeRabbit.wrap(plain, after(300));
    List<Boolean> again = new CopyOnWriteArrayList<>();
    List<String> read = new CopyOnWriteArrayList<>();
    consume(channel, queue, false, (same, message) -> {
      again.add(message.getEnvelope().isRedeliver());
      barrier();
      read.add(Antipode.serialize());
      ack(same, message);
    });
    until(() -> !again.isEmpty(), "the try");
    link.cut();
    link.heal();
    until(() -> again.size() >= 2, "it comes again");
    blog.store.heal("b");
    until(() -> !read.isEmpty(), "success");
    assertThat(read.get(0)).startsWith("1~blog..");
    until(() -> a.count(queue) == 0, "the acknowledgement");
  }

  @Test
  void theDelayIsTheSettingsUnlessTheChannelSaysAnother() {
    assertThat(options().redeliverDelay()).isEqualTo(Duration.ofSeconds(1));
    Antipode.configure(Settings.defaults().redeliverDelay(Duration.ofMillis(250)));
    assertThat(options().redeliverDelay()).isEqualTo(Duration.ofMillis(250));
    assertThat(after(0).redeliverDelay()).isZero();
    for (Duration bad : List.of(Duration.ofSeconds(-1), Duration.ofSeconds(100_000))) {
      assertThatThrownBy(() -> options().redeliverDelay(bad))
          .isInstanceOf(ConfigurationException.class).hasMessageContaining("redeliverDelay");
    }
  }
}
