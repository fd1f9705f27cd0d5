package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.done;
import static dev.antipode.rabbitmq.Region.get;
import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.impl.ForgivingExceptionHandler;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.ConfigurationException;
import dev.antipode.Keys;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.ScopeKind;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.CallSite;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What arrives: one scope a message, from the message's own header, in callbacks and by hand. */
class ConsumingTest extends WithBroker {
  private interface OnMessage {
    void take(Channel channel, Delivery message) throws IOException;
  }

  private Channel consume(String queue, OnMessage callback) {
    return consume(a.wrapped(), queue, callback);
  }

  private static Channel consume(Channel channel, String queue, OnMessage callback) {
    return done(() -> {
      channel.basicQos(10);
      channel.basicConsume(queue, false, (tag, message) -> callback.take(channel, message), tag -> {});
      return channel;
    });
  }

  private static void ack(Channel channel, Delivery message) throws IOException {
    channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
  }

  @Test
  void aMessageThatTheClientHandsOverNamesWhereItsConsumerWasRegistered_REC_7() {
    List<String> seen = new CopyOnWriteArrayList<>();
    String here = CallSite.current();
    String first = a.queue();
    consume(first, (channel, message) -> seen.add(LineageScope.current().openedBy()));
    a.publish("", first, stamped(ACL), "");
    until(() -> seen.equals(List.of(here)), "a callback's site");
    String second = a.queue();
    Channel channel = a.wrapped();
    done(() -> channel.basicConsume(second, true, new DefaultConsumer(channel) {
      @Override
      public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
        seen.add(LineageScope.current().openedBy());
      }
    }));
    a.publish("", second, stamped(ACL), "");
    until(() -> seen.equals(List.of(here, here)), "a consumer's site");
    assertThat(here).isNotEqualTo(CallSite.UNKNOWN);
  }

  @Test
  void eachMessageHasAScopeOfItsOwn_SCOPE_6() {
    String queue = a.queue();
    List<String> seen = new CopyOnWriteArrayList<>();
    List<LineageScope> scopes = new CopyOnWriteArrayList<>();
    a.publish("", queue, stamped(ACL), "");
    a.publish("", queue, stamped(TEXT), "");
    a.publish("", queue, null, "");
    consume(queue, (channel, message) -> {
      LineageScope scope = LineageScope.current();
      assertThat(scope.kind()).isEqualTo(ScopeKind.MESSAGE);
      assertThat(scope.queue()).isEqualTo(STORE);
      seen.add(Antipode.serialize());
      scope.append(WriteId.position("late", "e", seen.size()));
      ack(channel, message);
      assertThat(LineageScope.current()).as("it is kept over the acknowledgement").isSameAs(scope);
      scopes.add(scope);
    });
    until(() -> scopes.size() == 3 && scopes.stream().allMatch(LineageScope::isClosed), "three messages");
    assertThat(seen).as("nothing of one message reaches the next").containsExactly(ACL, TEXT, "1");
    assertThat(a.count(queue)).isZero();
  }

  @Test
  void consumersAndEveryFormOfConsumingAreScoped() throws IOException {
    List<String> seen = new CopyOnWriteArrayList<>();
    Channel channel = a.wrapped();
    List<String> queues = IntStream.range(0, 4).mapToObj(each -> a.queue()).toList();
    channel.basicConsume(queues.get(0), true, new DefaultConsumer(channel) {
      @Override
      public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
        seen.add("consumer " + Antipode.serialize());
      }
    });
    channel.basicConsume(
        queues.get(1), (tag, message) -> seen.add("two " + Antipode.serialize()), tag -> {});
    channel.basicConsume(
        queues.get(2), true, "mine", (tag, message) -> seen.add(tag + " " + Antipode.serialize()), tag -> {});
    channel.basicConsume(
        queues.get(3),
        true,
        "long",
        false,
        true,
        Map.of(),
        (tag, message) -> seen.add(tag + " " + Antipode.serialize()),
        tag -> {},
        (tag, signal) -> {});
    queues.forEach(queue -> a.publish("", queue, stamped(TEXT), ""));
    until(() -> seen.size() == 4, "four messages");
    assertThat(seen)
        .containsExactlyInAnyOrder("consumer " + TEXT, "two " + TEXT, "mine " + TEXT, "long " + TEXT);
  }

  @Test
  void whatACallbackPublishesCarriesItsMessagesLineage() {
    String queue = a.queue();
    String answers = a.queue();
    a.publish("", queue, stamped(TEXT), "");
    consume(queue, (channel, message) -> {
      channel.basicPublish("", answers, null, octets("answer"));
      ack(channel, message);
    });
    assertThat(headersOf(a.get(answers).getProps())).isEqualTo(Map.of(Messages.HEADER, TEXT));
  }

  @Test
  void scopesOfConcurrentConsumersDoNotMeet() {
    String queue = a.queue();
    int count = 200;
    Map<String, String> seen = new ConcurrentHashMap<>();
    for (int number = 0; number < count; number++) {
      a.publish("", queue, stamped("1~blog..0-1." + number), Integer.toString(number));
    }
    List<Throwable> errors = new CopyOnWriteArrayList<>();
    OnMessage callback = (channel, message) -> {
      try {
        String body = new String(message.getBody());
        String before = Antipode.serialize();
        Antipode.append(WriteId.position("seen", "e", Integer.parseInt(body)));
        assertThat(Antipode.serialize()).isEqualTo("1~blog..0-1." + body + "~seen..e." + body);
        seen.put(body, before);
      } catch (Throwable error) {
        errors.add(error);
      }
      ack(channel, message);
    };
    for (int number = 0; number < 3; number++) {
      consume(queue, callback);
    }
    until(() -> seen.size() + errors.size() >= count, "all messages");
    assertThat(errors).isEmpty();
    assertThat(seen).isEqualTo(IntStream.range(0, count).boxed()
        .collect(Collectors.toMap(String::valueOf, number -> "1~blog..0-1." + number)));
  }

  @Test
  void aCallbacksExceptionPassesUnchanged() throws IOException {
    String queue = a.queue();
    a.publish("", queue, stamped(ACL), "");
    List<Throwable> thrown = new CopyOnWriteArrayList<>();
    ConnectionFactory factory = new ConnectionFactory();
    factory.setExceptionHandler(new ForgivingExceptionHandler() {
      @Override
      public void handleConsumerException(
          Channel channel, Throwable error, com.rabbitmq.client.Consumer consumer, String tag, String method) {
        thrown.add(error);
      }
    });
    RuntimeException error = new IllegalStateException("the application's own");
    Channel channel = AntipodeRabbit.wrap(a.connection(a.url(), factory).createChannel(), STORE);
    consume(channel, queue, (same, message) -> {
      throw error;
    });
    until(() -> !thrown.isEmpty(), "the error");
    assertThat(thrown).containsExactly(error);
    channel.abort();
    until(() -> a.count(queue) == 1, "the message again: it was not acknowledged");
  }

  @Test
  void pulledMessagesAreTakenByHand() throws IOException {
    String queue = a.queue();
    Channel channel = a.wrapped();
    a.publish("", queue, stamped(ACL), "");
    a.publish("", queue, stamped(TEXT), "");
    GetResponse first = get(channel, queue, false);
    assertThat(Antipode.currentScope()).isEmpty();
    try (LineageScope scope = AntipodeRabbit.scopeOf(channel, first.getProps())) {
      assertThat(scope.lineage()).isEqualTo(Lineage.deserialize(ACL));
      assertThat(LineageScope.current()).isSameAs(scope);
      assertThatThrownBy(() -> Antipode.barrier(
              BarrierOptions.defaults().stores(STORE).onTimeout(Policy.REDELIVER)))
          .isInstanceOf(ConfigurationException.class).hasMessageContaining("AntipodeRabbit.handle");
    }
    channel.basicAck(first.getEnvelope().getDeliveryTag(), false);
    GetResponse second = get(channel, queue, false);
    boolean handled = AntipodeRabbit.handle(channel, second, false, () -> {
      assertThat(Antipode.serialize()).isEqualTo(TEXT);
      channel.basicAck(second.getEnvelope().getDeliveryTag(), false);
    });
    assertThat(handled).isTrue();
    assertThat(a.count(queue)).isZero();
    assertThatThrownBy(() -> AntipodeRabbit.scopeOf(a.own(), second.getProps()))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("wrap");
  }

  /** The usual form: the callback hands over, a pool works, and acknowledges. */
  @Test
  void workThatIsHandedToThreadsHasItsMessagesScope() {
    Blog blog = new Blog();
    String queue = a.queue();
    int count = 20;
    for (int number = 0; number < count; number++) {
      try (LineageScope scope = Antipode.scope()) {
        blog.inA.set("post:" + number, Integer.toString(number));
        a.publish("", queue, stamped(Antipode.serialize()), Integer.toString(number));
      }
    }
    Map<String, String> read = new ConcurrentHashMap<>();
    ExecutorService pool = Executors.newFixedThreadPool(4);
    try {
      consume(queue, (channel, message) -> pool.submit(() -> AntipodeRabbit.handle(channel, message, false, () -> {
        Antipode.barrier();
        String number = new String(message.getBody());
        read.put(number, blog.inB.get("post:" + number));
        ack(channel, message);
      })));
      until(() -> read.size() == count, "all messages");
      until(() -> a.count(queue) == 0, "all acknowledgements");
    } finally {
      pool.shutdownNow();
    }
    assertThat(read).isEqualTo(IntStream.range(0, count).boxed()
        .collect(Collectors.toMap(String::valueOf, String::valueOf)));
  }

  @Test
  void aBarrierInACallbackWaitsForTheMessagesWrites() throws InterruptedException {
    Blog blog = new Blog();
    String queue = a.queue();
    List<String> bodies = new CopyOnWriteArrayList<>();
    blog.store.freeze("b");
    Channel publisher = a.wrapped();
    try (LineageScope scope = Antipode.scope()) {
      blog.inA.set("post:42", "hi");
      done(() -> {
        publisher.basicPublish("", queue, null, octets("42"));
        return null;
      });
    }
    CountDownLatch begun = new CountDownLatch(1);
    consume(queue, (channel, message) -> {
      begun.countDown();
      Antipode.barrier();
      bodies.add(blog.inB.get("post:42"));
      ack(channel, message);
    });
    assertThat(begun.await(10, TimeUnit.SECONDS)).isTrue();
    assertThat(bodies).isEmpty();
    blog.store.heal("b");
    until(() -> !bodies.isEmpty(), "the callback");
    assertThat(bodies).containsExactly("hi");
  }

  private Lineage taken(String text, RabbitOptions options) {
    Channel channel = a.wrapped(options);
    String queue = a.queue();
    a.publish("", queue, stamped(text), "");
    GetResponse message = get(channel, queue, true);
    try (LineageScope scope = AntipodeRabbit.scopeOf(channel, message.getProps())) {
      return scope.lineage();
    }
  }

  @Test
  void trustDecidesWhatIsTaken_TRUST_31() {
    Lineage known = Lineage.deserialize(ACL);
    assertThat(taken(ACL, options())).isEqualTo(known);
    assertThat(taken(ACL, options().lineageIn(false))).isEqualTo(Lineage.EMPTY);
    Antipode.configure(Settings.defaults().edge(true));
    assertThat(taken(ACL, options())).isEqualTo(Lineage.EMPTY);
    assertThat(taken(ACL, options().lineageIn(true))).isEqualTo(known);
    Antipode.configure(Settings.defaults().edge(false).trust(Trust.NONE));
    assertThat(taken(ACL, options())).isEqualTo(Lineage.EMPTY);
    Antipode.configure(Settings.defaults()
        .trust(Trust.KEY).keys(Keys.of(Map.of("k", octets("0123456789abcdef")))));
    assertThat(taken(ACL, options())).isEqualTo(Lineage.EMPTY);
    String sealed;
    try (LineageScope scope = Antipode.scope(known)) {
      sealed = Messages.outgoing(null);
    }
    assertThat(taken(sealed, options())).isEqualTo(known);
  }

  @Test
  void aMessageOfAStampedQueueWithoutALineageIsIncomplete_TRUST_28() {
    Channel channel = a.wrapped(options().stamped(true));
    AMQP.BasicProperties bare = new AMQP.BasicProperties();
    try (LineageScope scope = AntipodeRabbit.scopeOf(channel, bare)) {
      assertThat(scope.lineage().isComplete()).isFalse();
      assertThat(scope.gaps()).extracting("reason").containsExactly("malformed");
    }
    try (LineageScope scope = AntipodeRabbit.scopeOf(channel, stamped("1"))) {
      assertThat(scope.lineage()).isEqualTo(Lineage.EMPTY);
      assertThat(scope.lineage().isComplete()).isTrue();
    }
    try (LineageScope scope = AntipodeRabbit.scopeOf(a.wrapped(), bare)) {
      assertThat(scope.lineage().isComplete()).as("without the option, no header is no lineage").isTrue();
    }
    Antipode.configure(Settings.defaults().edge(true).timeout(Duration.ofSeconds(1)));
    try (LineageScope scope = AntipodeRabbit.scopeOf(channel, bare)) {
      assertThat(scope.lineage().isComplete()).as("where none would be taken, none is missing").isTrue();
    }
  }

  @Test
  void theClientsOwnMistakesStayItsOwn() {
    Channel channel = a.wrapped();
    assertThatThrownBy(() -> channel.basicConsume("no-such-queue", true, (tag, message) -> {}, tag -> {}))
        .isInstanceOf(IOException.class).hasStackTraceContaining("NOT_FOUND");
    assertThat(channel.isOpen()).isFalse();
  }
}
