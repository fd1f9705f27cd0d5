package com.example.postnotification;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.LongString;
import dev.antipode.rabbitmq.AntipodeRabbit;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;

/** RabbitMQ by amqp-client: published in region A's broker, consumed in region B's. */
final class RabbitNotifications {
  private static final int TRANSIENT = 1;
  private static final long CONFIRM_MS = 30_000;

  private final Setup setup;
  private final Connection connection;

  /** What is told of a message: its text headers, and its body. */
  interface Handler {
    void handle(Map<String, String> headers, byte[] body) throws Exception;
  }

  /** Connects to the broker of a region; {@code threads} handle what is consumed. */
  RabbitNotifications(Setup setup, String region, int threads) throws Exception {
    this.setup = setup;
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(setup.queues().get(region));
    ExecutorService executor = Executors.newFixedThreadPool(threads, work -> {
      Thread thread = new Thread(work, "consumer");
      thread.setDaemon(true);
      return thread;
    });
    connection = factory.newConnection(executor);
  }

  private Channel channel() throws IOException {
    Channel channel = connection.createChannel();
    return setup.antipode() ? AntipodeRabbit.wrap(channel, Setup.QUEUE) : channel;
  }

  /** A channel that publishes; threads may share it. */
  Publisher publisher() throws IOException {
    return new Publisher(channel());
  }

  /** Consumes with as many channels as messages may be handled at once; returns when all of them do. */
  void consume(Handler handler, Consumer<Exception> failed) throws IOException {
    for (int number = 0; number < setup.options().consumers(); number++) {
      Channel channel = channel();
      channel.basicQos(1);
      channel.basicConsume(
          setup.queue(),
          false,
          (tag, message) -> handle(channel, message, handler, failed),
          tag -> failed.accept(new IOException("the broker ended a consumer")));
    }
  }

  private static void handle(Channel channel, Delivery message, Handler handler, Consumer<Exception> failed) {
    Map<String, String> headers = texts(message.getProperties().getHeaders());
    try (Tracing.Current current = Tracing.receiving(headers)) {
      handler.handle(headers, message.getBody());
      channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
    } catch (Exception error) {
      failed.accept(error);
    }
  }

  private static Map<String, String> texts(Map<String, Object> headers) {
    Map<String, String> texts = new HashMap<>();
    if (headers != null) {
      headers.forEach((name, value) -> {
        if (value instanceof LongString || value instanceof String) {
          texts.put(name, value.toString());
        }
      });
    }
    return texts;
  }

  /** A channel with confirmations. */
  static final class Publisher {
    private final Channel channel;
    private volatile boolean returned;

    private Publisher(Channel channel) throws IOException {
      this.channel = channel;
      channel.confirmSelect();
      channel.addReturnListener(message -> returned = true); // called before the confirmation comes
    }

    /** Publishes, and waits for the broker's confirmation. */
    synchronized void publish(String exchange, byte[] body) throws Exception {
      Map<String, Object> headers = new HashMap<>();
      Tracing.inject(headers, Map::put);
      BasicProperties properties = new BasicProperties.Builder().headers(headers).deliveryMode(TRANSIENT).build();
      returned = false;
      channel.basicPublish(exchange, "", true, properties, body);
      channel.waitForConfirmsOrDie(CONFIRM_MS);
      if (returned) {
        throw new IOException("the message reached no queue of exchange " + exchange);
      }
    }
  }
}
