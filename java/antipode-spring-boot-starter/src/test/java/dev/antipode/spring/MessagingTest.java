package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.ScopeKind;
import dev.antipode.WriteId;
import dev.antipode.lab.Lab;
import dev.antipode.propagation.Messages;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.amqp.RabbitAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Messages by a real broker: Spring AMQP's template and listeners, and the client alone (PROP-17, SCOPE-6, BAR-45). */
@ExtendWith(AntipodeIsolated.class)
class MessagingTest {
  private static final WriteId WRITE = WriteId.position("blog-posts", "e", 42);
  private static final WriteId LATER = WriteId.position("user-acl", "e", 7);

  private static Lab lab;

  private final ApplicationContextRunner runner =
      new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(AntipodeAutoConfiguration.class));

  @BeforeAll
  static void start() {
    lab = Lab.of("rabbitmq").set("rabbitmq.one_broker", "true").up();
  }

  @AfterAll
  static void stop() {
    lab.close();
  }

  private static String url() {
    return lab.server("rabbitmq", "a").url();
  }

  /** Two listeners, one behind the other. */
  @Configuration(proxyBeanMethods = false)
  static class Followers {
    /** What a listener saw. */
    record Seen(String body, Lineage lineage, ScopeKind kind, String queue, boolean canGoBack) {
      Seen(String body, Lineage lineage) {
        this(body, lineage, ScopeKind.MESSAGE, "notifications", false);
      }

      static Seen of(String body) {
        LineageScope scope = LineageScope.current();
        return scope == null
            ? new Seen(body, null)
            : new Seen(body, scope.lineage(), scope.kind(), scope.queue(), scope.delivery().canRedeliver());
      }
    }

    static final BlockingQueue<Seen> SEEN = new LinkedBlockingQueue<>();

    @Bean
    Listeners listeners(RabbitTemplate template) {
      return new Listeners(template);
    }

    @Bean
    Queue first() {
      return new Queue("first");
    }

    @Bean
    Queue second() {
      return new Queue("second");
    }

    /** They listen. */
    static class Listeners {
      private final RabbitTemplate template;

      Listeners(RabbitTemplate template) {
        this.template = template;
      }

      @RabbitListener(queues = "first")
      void first(String body) {
        SEEN.add(Seen.of(body));
        Antipode.append(LATER);
        template.convertAndSend("second", body + ", handled");
      }

      @RabbitListener(queues = "second")
      void second(String body) {
        SEEN.add(Seen.of(body));
      }
    }
  }

  private ApplicationContextRunner followers() {
    return runner.withConfiguration(AutoConfigurations.of(RabbitAutoConfiguration.class))
        .withUserConfiguration(Followers.class)
        .withPropertyValues(
            "spring.rabbitmq.addresses=" + url(),
            "antipode.stores.notifications.bean=rabbitConnectionFactory,rabbitListenerContainerFactory");
  }

  private static Followers.Seen seen() throws InterruptedException {
    return Followers.SEEN.poll(30, TimeUnit.SECONDS);
  }

  /** With the containers that have threads of their own, and those on the client's; with confirmations, too. */
  @ParameterizedTest
  @ValueSource(strings = {
    "spring.rabbitmq.listener.type=simple", "spring.rabbitmq.listener.type=direct",
    "spring.rabbitmq.publisher-confirm-type=correlated"})
  void listenersRunInTheScopeOfTheirMessage(String property) {
    Followers.SEEN.clear();
    followers().withPropertyValues(property).run(context -> {
      assertThat(context).hasNotFailed();
      for (int round = 0; round < 2; round++) { // the second by channels out of the cache
        try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
          context.getBean(RabbitTemplate.class).convertAndSend("first", "42");
        }
        assertThat(seen()).isEqualTo(new Followers.Seen("42", Lineage.of(WRITE)));
        assertThat(seen()).isEqualTo(new Followers.Seen("42, handled", Lineage.of(WRITE, LATER)));
      }
      context.getBean(RabbitTemplate.class).convertAndSend("second", "without");
      assertThat(seen()).isEqualTo(new Followers.Seen("without", Lineage.EMPTY));
    });
  }

  @Test
  void whatSpringAmqpCannotDoIsSaid() {
    followers().withPropertyValues("antipode.stores.notifications.extra.track=true").run(context ->
        assertThat(context).getFailure().hasStackTraceContaining("messages of Spring AMQP are not tracked"));
  }

  /** One that has lost its lineage on the way, by a shovel for instance, depends on nobody knows what. */
  @Test
  void aMessageOfAStampedQueueWithoutALineageIsIncomplete_TRUST_28() {
    Followers.SEEN.clear();
    followers().withPropertyValues("antipode.stores.notifications.extra.stamped=true").run(context -> {
      assertThat(context).hasNotFailed();
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
        context.getBean(RabbitTemplate.class).convertAndSend("second", "with");
      }
      assertThat(seen()).isEqualTo(new Followers.Seen("with", Lineage.of(WRITE)));
      publish("second", "without");
      assertThat(seen()).isEqualTo(new Followers.Seen("without", Lineage.EMPTY.markedIncomplete()));
    });
  }

  /** Publishes without Antipode. */
  private static void publish(String queue, String... bodies) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(url());
    try (Connection connection = factory.newConnection()) {
      var channel = connection.createChannel();
      channel.queueDeclare(queue, true, false, false, null);
      for (String body : bodies) {
        AMQP.BasicProperties.Builder text = new AMQP.BasicProperties.Builder().contentType("text/plain");
        if (body.startsWith("1~")) { // its body is its lineage
          text.headers(Map.of(Messages.HEADER, body));
        }
        channel.basicPublish("", queue, text.build(), body.getBytes(StandardCharsets.UTF_8));
      }
    }
  }

  /** Listens to batches. */
  @Configuration(proxyBeanMethods = false)
  static class Batches {
    static final BlockingQueue<List<Object>> SEEN = new LinkedBlockingQueue<>();

    @Bean
    Batches batches() {
      return new Batches();
    }

    @RabbitListener(queues = "batch")
    void all(List<Message> batch) {
      LineageScope scope = LineageScope.current();
      SEEN.add(List.of(batch.size(), scope.lineage(), scope.gaps().size()));
    }
  }

  @Test
  void aBatchIsIncompleteWhereOneOfItsMessagesIs_TRUST_28() throws Exception {
    publish("batch", Lineage.of(WRITE).serialize(), "without");
    runner.withConfiguration(AutoConfigurations.of(RabbitAutoConfiguration.class))
        .withUserConfiguration(Batches.class)
        .withPropertyValues(
            "spring.rabbitmq.addresses=" + url(),
            "spring.rabbitmq.listener.simple.consumer-batch-enabled=true",
            "spring.rabbitmq.listener.simple.batch-size=2",
            "antipode.stores.notifications.bean=rabbitListenerContainerFactory",
            "antipode.stores.notifications.extra.stamped=true")
        .run(context -> {
          assertThat(context).hasNotFailed();
          assertThat(Batches.SEEN.poll(30, TimeUnit.SECONDS)).isEqualTo(List.of(2, Lineage.of(WRITE).markedIncomplete(), 1));
        });
  }

  /** Each send takes a channel; a look at the tap takes a connection of its own. */
  @Test
  void tapsAreLookedAtOnceAndNotByEachMessage() throws Exception {
    Followers.SEEN.clear();
    AtomicInteger looks = new AtomicInteger();
    try (ServerSocket tap = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      Thread broker = new Thread(() -> {
        while (!tap.isClosed()) {
          try (var connection = tap.accept()) { // and does not answer
            looks.incrementAndGet();
          } catch (IOException closed) {
            return;
          }
        }
      });
      broker.start();
      followers()
          .withPropertyValues(
              "antipode.stores.notifications.replicas=amqp://guest:guest@127.0.0.1:" + tap.getLocalPort() + "/%2F#tap")
          .run(context -> {
            assertThat(context).hasNotFailed();
            RabbitTemplate template = context.getBean(RabbitTemplate.class);
            template.convertAndSend("second", "first");
            assertThat(seen()).isEqualTo(new Followers.Seen("first", Lineage.EMPTY));
            int before = looks.get();
            assertThat(before).as("each bean is wrapped once").isEqualTo(2);
            for (int number = 0; number < 5; number++) {
              template.convertAndSend("second", "next");
              assertThat(seen().body()).isEqualTo("next");
            }
            assertThat(looks.get()).isEqualTo(before);
          });
    }
  }

  /** The client alone: a connection of the application's own, whose tracked message is waited for at the end. */
  @Test
  void aConnectionOfTheClient() {
    runner.withBean("broker", Connection.class, () -> {
      ConnectionFactory factory = new ConnectionFactory();
      try {
        factory.setUri(url());
        return factory.newConnection();
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    })
        .withPropertyValues("antipode.stores.orders.bean=broker", "antipode.stores.orders.extra.track=true")
        .run(context -> {
          assertThat(context).hasNotFailed();
          BlockingQueue<Lineage> seen = new LinkedBlockingQueue<>();
          BlockingQueue<Boolean> passed = new LinkedBlockingQueue<>();
          var channel = context.getBean(Connection.class).createChannel();
          channel.queueDeclare("orders", false, false, true, null);
          channel.basicConsume("orders", true, (tag, message) -> {
            seen.add(LineageScope.current().lineage());
            passed.add(Antipode.barrier(BarrierOptions.defaults().stores("orders")).satisfied());
          }, tag -> {});
          Lineage sent;
          try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
            channel.basicPublish("", "orders", null, "7".getBytes(StandardCharsets.UTF_8));
            sent = scope.lineage();
          }
          assertThat(sent.stores()).containsExactlyInAnyOrderElementsOf(List.of("blog-posts", "orders"));
          assertThat(seen.poll(30, TimeUnit.SECONDS)).isEqualTo(sent);
          assertThat(passed.poll(30, TimeUnit.SECONDS)).isTrue();
        });
  }
}
