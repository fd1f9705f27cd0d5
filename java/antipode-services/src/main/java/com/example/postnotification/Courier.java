package com.example.postnotification;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.MessageProperties;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.RedeliverException;
import dev.antipode.WriteId;
import dev.antipode.memory.MemoryStore;
import dev.antipode.rabbitmq.AntipodeRabbit;
import dev.antipode.rabbitmq.RabbitOptions;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Sends numbers, or sends them on, until it is killed: benchmarks/deliveries.md. */
final class Courier {
  private static final String ORIGIN = "origin";
  private static final String RELAY = "relay";
  private static final int PREFETCH = 5;
  private static final int PASSED = 3; // its exit code where a barrier passed for a write that nobody has
  private static final long CONFIRM_MS = 60_000;

  private final Channel channel;

  private Courier(String url) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(url);
    channel = AntipodeRabbit.wrap(
        factory.newConnection().createChannel(),
        RabbitOptions.named("parcels").redeliverDelay(Duration.ofMillis(50)));
    channel.confirmSelect();
  }

  /** Runs a courier: its role, the broker's URL, a queue, and the rest of the role. */
  static void run(String[] words) throws Exception {
    Courier courier = new Courier(words[1]);
    if (words[0].equals("produce")) {
      courier.produce(words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]));
    } else {
      courier.relay(words[2], words[3]);
    }
  }

  private void publish(String queue, byte[] body) throws Exception {
    channel.basicPublish("", queue, true, MessageProperties.PERSISTENT_BASIC, body);
    channel.waitForConfirmsOrDie(CONFIRM_MS);
  }

  private void produce(String queue, int first, int last) throws Exception {
    for (int number = first; number < last; number++) {
      try (LineageScope scope = Antipode.scope()) {
        scope.append(WriteId.position(ORIGIN, "e", number));
        publish(queue, Integer.toString(number).getBytes(StandardCharsets.UTF_8));
      }
      System.out.println(number);
      System.out.flush();
    }
    System.exit(0);
  }

  private void relay(String queue, String out) throws Exception {
    MemoryStore.named(ORIGIN).client("a"); // has none of the writes that the messages depend on
    channel.basicQos(PREFETCH);
    channel.basicConsume(queue, false, (tag, message) -> take(message, out), tag -> {});
    Thread.currentThread().join();
  }

  /** Sends a message on, and answers for it; its first delivery may fail, by the last digit of its number. */
  private void take(Delivery message, String out) {
    long tag = message.getEnvelope().getDeliveryTag();
    int number = Integer.parseInt(new String(message.getBody(), StandardCharsets.UTF_8));
    int failure = message.getEnvelope().isRedeliver() ? 0 : number % 10;
    try {
      if (failure == 5) {
        Antipode.barrier(BarrierOptions.defaults()
            .timeout(Duration.ZERO)
            .onTimeout(Policy.REDELIVER)
            .onUnproven(Policy.REDELIVER));
        Runtime.getRuntime().halt(PASSED);
      }
      if (failure != 3) {
        Antipode.append(WriteId.position(RELAY, "e", number));
        publish(out, message.getBody());
      }
      if (failure == 3 || failure == 7) {
        channel.basicNack(tag, false, true);
      } else {
        channel.basicAck(tag, false);
      }
    } catch (RedeliverException error) {
      throw error;
    } catch (Exception error) { // the client would close the channel alone
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }
}
