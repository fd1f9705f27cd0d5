package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import dev.antipode.lab.Lab;
import dev.antipode.lab.LabServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeoutException;

/** One region's broker, as a test uses it: connections that end with the test, queues of its own. */
final class Region implements AutoCloseable {
  static final String KIND = "rabbitmq";
  static final String EXCHANGE = "notifications";

  private final Lab lab;
  private final String name;
  private final List<Connection> connections = new CopyOnWriteArrayList<>();
  private final List<Link> links = new ArrayList<>();
  private final List<String> queues = new ArrayList<>();
  private Channel own;

  Region(Lab lab, String name) {
    this.lab = lab;
    this.name = name;
  }

  LabServer server() {
    return lab.server(KIND, name);
  }

  String url() {
    return server().url();
  }

  /** A way of its own to this broker; cut when the test ends. */
  Link link() {
    Link link = new Link(server().port());
    links.add(link);
    return link;
  }

  String url(Link link) {
    return url().replace(":" + server().port() + "/", ":" + link.port() + "/");
  }

  // Connections

  Connection connection() {
    return connection(url());
  }

  Connection connection(String url) {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setAutomaticRecoveryEnabled(false);
    return connection(url, factory);
  }

  Connection connection(String url, ConnectionFactory factory) {
    try {
      factory.setUri(new URI(url));
      factory.setShutdownTimeout(2000);
      Connection connection = factory.newConnection();
      connections.add(connection);
      return connection;
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  Channel channel() {
    return channel(url());
  }

  Channel channel(String url) {
    return done(() -> connection(url).createChannel());
  }

  Channel wrapped() {
    return wrapped(RabbitOptions.named(EXCHANGE));
  }

  Channel wrapped(RabbitOptions options) {
    return AntipodeRabbit.wrap(channel(), options);
  }

  /** A plain channel of the test's own. */
  Channel own() {
    if (own == null || !own.isOpen()) {
      own = channel();
    }
    return own;
  }

  // Queues

  /** A new queue, deleted at the test's end. */
  String queue() {
    return queue(Map.of());
  }

  String queue(Map<String, Object> arguments) {
    String queue = "q-" + UUID.randomUUID();
    done(() -> own().queueDeclare(queue, true, false, false, arguments));
    return owned(queue);
  }

  /** This queue is deleted at the test's end. */
  String owned(String queue) {
    queues.add(queue);
    return queue;
  }

  /** A new exchange of this region alone, gone when its last queue is. */
  String exchange(String kind) {
    String exchange = "amq-" + UUID.randomUUID();
    done(() -> own().exchangeDeclare(exchange, kind, false, true, null));
    return exchange;
  }

  /** A new tap at an exchange. */
  Tap tap(String exchange) {
    return Tap.of(url(), owned(done(() -> AntipodeRabbit.declareTap(own(), exchange, "tap-" + UUID.randomUUID()))));
  }

  /** Publishes without Antipode. */
  void publish(String exchange, String routingKey, AMQP.BasicProperties properties, String body) {
    done(() -> {
      own().basicPublish(exchange, routingKey, properties, body.getBytes());
      return null;
    });
  }

  /** The next message of a queue, acknowledged. */
  GetResponse get(String queue) {
    return get(own(), queue, true);
  }

  static GetResponse get(Channel channel, String queue, boolean autoAck) {
    GetResponse[] found = new GetResponse[1];
    until(
        () -> {
          found[0] = done(() -> channel.basicGet(queue, autoAck));
          return found[0] != null;
        },
        "a message of " + queue);
    return found[0];
  }

  /** How many messages wait in a queue. */
  long count(String queue) {
    return done(() -> own().messageCount(queue));
  }

  @Override
  public void close() {
    for (String queue : queues) {
      try {
        own().queueDelete(queue);
      } catch (IOException error) { // it is gone already, and the channel with it
        own = null;
      }
    }
    queues.clear();
    closeConnections();
    links.forEach(Link::close);
    links.clear();
  }

  void closeConnections() {
    connections.forEach(connection -> connection.abort(2000));
    connections.clear();
    own = null;
  }

  /** The result; what is checked is thrown as unchecked, with the client's words. */
  static <T> T done(Callable<T> work) {
    try {
      return work.call();
    } catch (RuntimeException error) {
      throw error;
    } catch (IOException error) {
      throw new UncheckedIOException(String.valueOf(error.getCause()), error);
    } catch (TimeoutException error) {
      throw new IllegalStateException("timed out", error);
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  /** Waits for a condition. */
  static void until(Callable<Boolean> condition, String what) {
    until(condition, what, Duration.ofSeconds(20));
  }

  static void until(Callable<Boolean> condition, String what, Duration patience) {
    long deadline = System.nanoTime() + patience.toNanos();
    while (!done(condition)) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("in vain: " + what);
      }
      try {
        Thread.sleep(5);
      } catch (InterruptedException interrupted) {
        throw new AssertionError(what, interrupted);
      }
    }
  }
}
