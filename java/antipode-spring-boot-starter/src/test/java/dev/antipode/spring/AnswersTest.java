package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.lab.Lab;
import dev.antipode.testing.AntipodeIsolated;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.rabbit.AsyncRabbitTemplate;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.batch.SimpleBatchingStrategy;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.core.BatchingRabbitTemplate;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.amqp.RabbitAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** What answers, is pulled, comes later or in batches, by Spring AMQP on a real broker (SCOPE-28, SCOPE-29, SCOPE-30). */
@ExtendWith(AntipodeIsolated.class)
class AnswersTest {
  private static final WriteId WRITE = WriteId.position("blog-posts", "e", 42);
  private static final WriteId LATER = WriteId.position("user-acl", "e", 7);
  private static final BlockingQueue<String> SEEN = new LinkedBlockingQueue<>();

  private static Lab lab;

  @BeforeAll
  static void start() {
    lab = Lab.of("rabbitmq").set("rabbitmq.one_broker", "true").up();
  }

  @AfterAll
  static void stop() {
    lab.close();
  }

  @Configuration(proxyBeanMethods = false)
  static class Application {
    @Bean
    Queue asked() {
      return new Queue("asked");
    }

    @Bean
    Queue begun() {
      return new Queue("begun");
    }

    @Bean
    Queue done() {
      return new Queue("done");
    }

    @Bean
    Queue pulled() {
      return new Queue("pulled");
    }

    @Bean
    Listeners listeners() {
      return new Listeners();
    }
  }

  /** They listen. */
  static class Listeners {
    @RabbitListener(queues = "asked")
    String asked(String body) {
      Antipode.append(LATER);
      return body + ", answered";
    }

    /** Goes on in another thread, in the scope that it carries or in none. */
    @RabbitListener(queues = "begun")
    @SendTo("done")
    CompletableFuture<String> begun(String body) {
      CompletableFuture<String> result = new CompletableFuture<>();
      Runnable write = Antipode.carry((Runnable) () -> Antipode.append(LATER));
      Runnable answer = () -> result.complete(body);
      Runnable all = () -> {
        try {
          TimeUnit.MILLISECONDS.sleep(50); // the listener has returned
        } catch (InterruptedException error) {
          Thread.currentThread().interrupt();
        }
        write.run();
        answer.run();
      };
      new Thread(body.equals("carried") ? Antipode.carry(all) : all).start();
      return result;
    }

    @RabbitListener(queues = "done")
    void done(String body) {
      SEEN.add(LineageScope.current().lineage().serialize());
    }
  }

  private ApplicationContextRunner application() {
    SEEN.clear();
    return new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(AntipodeAutoConfiguration.class, RabbitAutoConfiguration.class))
        .withUserConfiguration(Application.class)
        .withPropertyValues(
            "spring.rabbitmq.addresses=" + lab.server("rabbitmq", "a").url(),
            "antipode.stores.notifications.bean=rabbitConnectionFactory,rabbitListenerContainerFactory");
  }

  /** By the broker's own queue of answers, and by one that is declared for each. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anAnswerJoinsTheScopeThatAsked_SCOPE_29(boolean isTemporary) {
    application().run(context -> {
      assertThat(context).hasNotFailed();
      RabbitTemplate template = context.getBean(RabbitTemplate.class);
      template.setReplyTimeout(60_000);
      template.setUseTemporaryReplyQueues(isTemporary);
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
        assertThat(template.convertSendAndReceive("asked", "42")).isEqualTo("42, answered");
        assertThat(scope.lineage().serialize()).isEqualTo(Lineage.of(WRITE, LATER).serialize());
        assertThat(scope.additions()).as("it goes back to the caller").isEqualTo(Lineage.of(LATER));
      }
    });
  }

  /** PROP-27, SCOPE-29: whoever was asked may have written. */
  @Test
  void aQuestionThatIsNotAnsweredLeavesTheScopeIncomplete() {
    application().run(context -> {
      RabbitTemplate template = context.getBean(RabbitTemplate.class);
      template.setReplyTimeout(50);
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
        assertThat(template.convertSendAndReceive("pulled", "42")).isNull();
        assertThat(scope.lineage().serialize()).isEqualTo(Lineage.of(WRITE).markedIncomplete().serialize());
        assertThat(template.receive("pulled", 60_000)).isNotNull();
      }
    });
  }

  @Test
  void anAnswerThatComesLaterJoinsBeforeAnybodyHasIt_SCOPE_29() {
    application().run(context -> {
      AsyncRabbitTemplate template = new AsyncRabbitTemplate(context.getBean(RabbitTemplate.class));
      template.setReceiveTimeout(60_000);
      template.start();
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
        CompletableFuture<String> answer = template.convertSendAndReceive("asked", "42");
        assertThat(answer.get(60, TimeUnit.SECONDS)).isEqualTo("42, answered");
        assertThat(scope.lineage().serialize()).isEqualTo(Lineage.of(WRITE, LATER).serialize());
      } finally {
        template.stop();
      }
    });
  }

  @Test
  void whatIsPulledJoinsTheScope_SCOPE_29() {
    application().run(context -> {
      RabbitTemplate template = context.getBean(RabbitTemplate.class);
      send(template, "pulled", WRITE);
      try (LineageScope scope = Antipode.scope()) {
        assertThat(template.receiveAndConvert("pulled", 60_000)).isEqualTo("42");
        assertThat(scope.additions()).isEqualTo(Lineage.of(WRITE));
      }
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
        template.convertAndSend("pulled", "42", message -> {
          message.getMessageProperties().setReplyTo("done");
          return message;
        });
      }
      try (LineageScope scope = Antipode.scope(Lineage.of(LATER))) {
        assertThat(template.<String, String>receiveAndReply("pulled", body -> body)).isTrue();
        assertThat(scope.lineage().serialize()).isEqualTo(Lineage.of(WRITE, LATER).serialize());
      }
      assertThat(SEEN.poll(60, TimeUnit.SECONDS)).isEqualTo(Lineage.of(WRITE, LATER).serialize());
    });
  }

  private static void send(RabbitTemplate template, String queue, WriteId write) {
    try (LineageScope scope = Antipode.scope(Lineage.of(write))) {
      template.convertAndSend(queue, "42");
    }
  }

  /** SCOPE-28: the scope is open until the future is done, and what Spring then publishes for it carries it. */
  @ParameterizedTest
  @ValueSource(strings = {"carried", "alone"})
  void aListenersFutureKeepsItsScope_SCOPE_28(String thread) {
    application().run(context -> {
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
        context.getBean(RabbitTemplate.class).convertAndSend("begun", thread);
      }
      assertThat(SEEN.poll(60, TimeUnit.SECONDS)).isEqualTo(Lineage.of(WRITE, LATER).serialize());
    });
  }

  /** Collects messages. */
  @Configuration(proxyBeanMethods = false)
  static class Batches {
    @Bean
    ThreadPoolTaskScheduler timer() {
      return new ThreadPoolTaskScheduler();
    }

    @Bean
    BatchingRabbitTemplate batches(ConnectionFactory factory, ThreadPoolTaskScheduler timer) {
      return new BatchingRabbitTemplate(factory, new SimpleBatchingStrategy(2, 100_000, 300), timer);
    }
  }

  /** SCOPE-30: who sends a batch, or a timer that sends a single message, knows nothing of its senders. */
  @Test
  void aBatchOfSeveralSendersIsIncomplete_SCOPE_30() {
    application().withUserConfiguration(Batches.class).run(context -> {
      assertThat(context).hasNotFailed();
      BatchingRabbitTemplate template = context.getBean(BatchingRabbitTemplate.class);
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
        template.convertAndSend("", "done", "42"); // by the timer, in the end
        assertThat(SEEN.poll(60, TimeUnit.SECONDS)).isEqualTo(Lineage.EMPTY.markedIncomplete().serialize());
        template.convertAndSend("", "done", "42");
      }
      try (LineageScope scope = Antipode.scope(Lineage.of(LATER))) {
        template.convertAndSend("", "done", "43");
      }
      assertThat(Antipode.deserialize(SEEN.poll(60, TimeUnit.SECONDS)).isComplete()).isFalse();
    });
  }

  /** SCOPE-30: nobody looks at the messages of a template that is no bean, so the channel has to see the batch. */
  @Test
  void aBatchOfATemplateThatIsNoBeanIsIncomplete_SCOPE_30() {
    application().withUserConfiguration(Batches.class).run(context -> {
      assertThat(context).hasNotFailed();
      BatchingRabbitTemplate template = new BatchingRabbitTemplate(
          context.getBean(ConnectionFactory.class),
          new SimpleBatchingStrategy(2, 100_000, 600_000),
          context.getBean(ThreadPoolTaskScheduler.class));
      for (WriteId write : List.of(WRITE, LATER)) {
        try (LineageScope scope = Antipode.scope(Lineage.of(write))) {
          template.convertAndSend("", "done", "42");
        }
      }
      assertThat(Antipode.deserialize(SEEN.poll(60, TimeUnit.SECONDS)).isComplete()).isFalse();
    });
  }
}
