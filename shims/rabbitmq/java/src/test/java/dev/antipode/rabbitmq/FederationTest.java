package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.EXCHANGE;
import static dev.antipode.rabbitmq.Region.done;
import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.MessageProperties;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Opaque;
import dev.antipode.Policy;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.propagation.Messages;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** Two regions: headers over a federation link, duplicates after a partition, tracking across it. */
class FederationTest extends WithBroker {
  /** A queue in B of what is published in A from now on. */
  private String bound() {
    String queue = b.queue();
    done(() -> b.own().queueBind(queue, EXCHANGE, ""));
    lab().verb(Region.KIND, "wait_probe", EXCHANGE);
    done(() -> b.own().queuePurge(queue));
    return queue;
  }

  /** The story of the paper: the message is faster than the write that it speaks of. */
  @Test
  void postNotificationOverAFederationLink() {
    Blog blog = new Blog();
    blog.store.freeze("b");
    String queue = bound();
    Channel publisher = a.wrapped();
    Channel consumer = b.wrapped();
    int count = 20;
    List<Object> plain = Collections.synchronizedList(new ArrayList<>());
    List<String> reads = new CopyOnWriteArrayList<>();
    done(() -> consumer.basicConsume(queue, true, (tag, message) -> {
      String key = new String(message.getBody());
      plain.add(blog.inB.get(key));
      Antipode.barrier();
      reads.add(String.valueOf(blog.inB.get(key)));
    }, tag -> {}));
    for (int number = 0; number < count; number++) {
      String key = "post:" + number;
      try (LineageScope scope = Antipode.scope()) {
        blog.inA.set(key, "hi");
        done(() -> {
          publisher.basicPublish(EXCHANGE, "", null, octets(key));
          return null;
        });
      }
    }
    until(() -> !plain.isEmpty(), "the first message");
    blog.store.heal("b");
    until(() -> reads.size() >= count, "all messages");
    assertThat(plain).as("without a barrier some are not there yet").containsNull();
    assertThat(reads).containsOnly("hi");
  }

  @Test
  void headersOfAllKindsAndOursSurviveFederation_PROP_17() {
    String queue = bound();
    Lineage lineage = Lineage.of(
        WriteId.position("blog", "8371ab90c2d4e6f1", Long.MIN_VALUE),
        new WriteId("img", Key.of("cat.jpg ü~"), new Opaque("m")));
    AMQP.BasicProperties given = new AMQP.BasicProperties.Builder()
        .headers(Map.of("int", 1L << 40, "list", List.of(1, true), "table", Map.of("k", 7)))
        .priority(2)
        .messageId("m")
        .build();
    Channel publisher = a.wrapped();
    try (LineageScope scope = Antipode.scope(lineage)) {
      done(() -> {
        publisher.basicPublish(EXCHANGE, "k", given, octets("body"));
        return null;
      });
    }
    GetResponse message = b.get(queue);
    Map<String, Object> headers = headersOf(message.getProps());
    assertThat(message.getBody()).isEqualTo(octets("body"));
    assertThat(headers).containsEntry(Messages.HEADER, lineage.serialize()).containsAllEntriesOf(given.getHeaders());
    assertThat(message.getProps().getMessageId()).isEqualTo("m");
    assertThat(headers).as("it did come over the link").containsKey("x-received-from");
  }

  private static boolean passes(Lineage lineage, Tap tap, Duration timeout) {
    return Antipode.barrier(BarrierOptions.defaults()
            .lineage(lineage).timeout(timeout).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED))
        .store(STORE).servers().stream()
        .anyMatch(server -> server.address().equals(tap.address()) && server.verdict() == Verdict.VISIBLE);
  }

  private List<Lineage> publish(Channel channel, int count) {
    List<Lineage> sent = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      try (LineageScope scope = Antipode.scope()) {
        done(() -> {
          channel.basicPublish(EXCHANGE, "", MessageProperties.PERSISTENT_BASIC, new byte[0]);
          channel.waitForConfirmsOrDie(20_000);
          return null;
        });
        sent.add(scope.lineage());
      }
    }
    return sent;
  }

  /** Nothing passes while the link is cut, everything after; each copy of a message has a scope of its own. */
  @Test
  void duplicatesAndTrackingThroughAPartition() {
    Tap tap = b.tap(EXCHANGE);
    String queue = bound();
    AntipodeRabbit.register(options().tap(tap));
    Channel publisher = a.wrapped(options().track(true));
    done(publisher::confirmSelect);
    List<Lineage> all = new ArrayList<>(publish(publisher, 100));
    assertThat(passes(all.get(99), tap, Duration.ofSeconds(20))).isTrue();
    lab().partition(Region.KIND, "b");
    try {
      List<Lineage> held = publish(publisher, 100);
      long begun = System.nanoTime();
      assertThat(passes(held.get(0), tap, Duration.ofMillis(500))).isFalse();
      assertThat(System.nanoTime() - begun).as("bounded by the deadline").isLessThan(3_000_000_000L);
      assertThat(passes(all.get(0), tap, Duration.ofSeconds(2))).as("what had arrived stays arrived").isTrue();
      all.addAll(held);
    } finally {
      lab().heal();
    }
    assertThat(all).allMatch(each -> passes(each, tap, Duration.ofSeconds(20)));
    Set<String> texts = ConcurrentHashMap.newKeySet();
    Channel consumer = b.wrapped();
    done(() -> consumer.basicConsume(queue, true, (tag, message) -> {
      if (message.getBody().length == 0) {
        texts.add(Antipode.serialize());
      }
    }, tag -> {}));
    until(() -> texts.size() >= all.size(), "every message");
    Set<String> wanted = new HashSet<>();
    all.forEach(each -> wanted.add(each.serialize()));
    assertThat(texts).as("a copy has its message's lineage and nothing of another's").isEqualTo(wanted);
  }
}
