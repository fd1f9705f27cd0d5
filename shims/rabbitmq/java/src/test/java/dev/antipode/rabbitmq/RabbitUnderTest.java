package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.EXCHANGE;
import static dev.antipode.rabbitmq.Region.done;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.GetResponse;
import dev.antipode.lab.Lab;
import dev.antipode.shim.Capabilities;
import dev.antipode.testing.StoreUnderTest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * RabbitMQ as the conformance kit drives it: tracked messages from region A, and two taps that see them arrive in B; one is
 * read straight, the other through a link of its own.
 */
final class RabbitUnderTest extends StoreUnderTest implements AutoCloseable {
  private static final String NO_FAILOVER =
      "brokers of two regions are parted by federation: none takes the other's place";
  private static final String OWN_BROKERS =
      "both regions are one broker here, which all tests share; RestartsTest restarts two of its own";
  private static final long CONFIRM_MILLIS = 20_000;

  private final Lab lab;
  private final Region a;
  private final Region b;
  private final Link link;
  private final String oracle;
  private final Tap straight;
  private final Tap linked;
  private ThreadLocal<Channel> channels;
  private final Map<String, String> arrived = new HashMap<>();

  RabbitUnderTest(Lab lab) {
    this.lab = lab;
    a = new Region(lab, "a");
    b = new Region(lab, "b");
    link = b.link();
    oracle = b.queue();
    done(() -> b.own().queueBind(oracle, EXCHANGE, ""));
    straight = b.tap(EXCHANGE);
    String second = b.owned(done(() -> AntipodeRabbit.declareTap(b.own(), EXCHANGE, "kit-" + UUID.randomUUID())));
    linked = Tap.of(b.url(link), second);
    lab.verb(Region.KIND, "wait_probe", EXCHANGE);
  }

  @Override
  public void close() {
    done(() -> b.own().queuePurge(EXCHANGE)); // the lab's own queue of that name got all that was published
    a.close();
    b.close();
  }

  @Override
  public Capabilities capabilities() {
    return new RabbitShim().capabilities();
  }

  @Override
  public Map<String, String> exceptions() {
    return Map.of(
        "commit_inside_a_transaction", "a channel's transaction commits by tx.commit alone",
        "promotion", NO_FAILOVER,
        "promotion_with_lost_writes", NO_FAILOVER,
        "second_promotion", NO_FAILOVER,
        "parked_across_a_promotion", NO_FAILOVER,
        "repointed_replica", NO_FAILOVER,
        "restarted_replica", OWN_BROKERS,
        "restarted_primary", OWN_BROKERS);
  }

  @Override
  public Duration patience() {
    return Duration.ofSeconds(30);
  }

  @Override
  public String rightsCure() {
    return "set_permissions";
  }

  @Override
  public String unfitCure() {
    return "no stream queue";
  }

  @Override
  public void begin() {
    channels = new ThreadLocal<>();
    arrived.clear();
    AntipodeRabbit.register(RabbitOptions.named(name()).tap(straight, linked));
  }

  @Override
  public void recover(boolean spoiled) {
    a.closeConnections();
    link.heal();
    lab.lag(Region.KIND, "b", Duration.ofMillis(10));
    lab.heal();
  }

  @Override
  public String primary() {
    return "a";
  }

  @Override
  public List<String> replicas() {
    return List.of("b", "b through a link");
  }

  // Messages

  /** This thread's own: channels are not to be shared. */
  private Channel channel() {
    Channel channel = channels.get();
    if (channel == null || !channel.isOpen()) {
      Channel opened = a.wrapped(RabbitOptions.named(name()).track(true));
      done(opened::confirmSelect);
      channels.set(opened);
      channel = opened;
    }
    return channel;
  }

  @Override
  public void write(String key, String value) {
    publish(channel(), EXCHANGE, key, value, false);
  }

  private static void publish(Channel channel, String exchange, String key, String value, boolean mandatory) {
    done(() -> {
      channel.basicPublish(
          exchange, "", mandatory, null, (key + "=" + value).getBytes(StandardCharsets.UTF_8));
      channel.waitForConfirmsOrDie(CONFIRM_MILLIS);
      return null;
    });
  }

  @Override
  public String look(String key, String at) {
    while (true) {
      GetResponse message = done(() -> b.own().basicGet(oracle, true));
      if (message == null) {
        return arrived.get(key);
      }
      String[] words = new String(message.getBody(), StandardCharsets.UTF_8).split("=", 2);
      arrived.put(words[0], words.length < 2 ? "" : words[1]);
    }
  }

  @Override
  public void transaction(TransactionBody work) {
    Channel channel = a.wrapped(RabbitOptions.named(name()).track(true));
    done(channel::txSelect);
    try {
      work.run(new Opened(channel));
    } catch (RuntimeException | Error error) {
      done(channel::txRollback);
      throw error;
    }
    done(channel::txCommit);
  }

  private record Opened(Channel channel) implements Transaction {
    /** Taking a message is no write. */
    @Override
    public void read(String key) {}

    @Override
    public void write(String key, String value) {
      done(() -> {
        channel.basicPublish(EXCHANGE, "", null, (key + "=" + value).getBytes(StandardCharsets.UTF_8));
        return null;
      });
    }
  }

  /** What counts is a tap, and not a client's own broker. */
  @Override
  public Object wrapUnused(String server) {
    return null;
  }

  // Links and servers

  @Override
  public void setLag(String replica, Duration lag) {
    lab.lag(Region.KIND, "b", lag);
  }

  @Override
  public void partition(String replica) {
    lab.partition(Region.KIND, "b");
  }

  @Override
  public void heal(String replica) {
    lab.healSoon(Region.KIND, "b");
  }

  @Override
  public void freeze(String server) {
    if (!server.equals(far())) {
      throw new AssertionError("only the tap behind the link can be frozen");
    }
    link.silence();
  }

  @Override
  public void thaw(String server) {
    link.heal();
  }

  // Troubles

  @Override
  public void writeWithUnknownOutcome(String key, String value) {
    try (Link way = new Link(a.server().port())) {
      Channel channel = AntipodeRabbit.wrap(a.channel(a.url(way)), RabbitOptions.named(name()).track(true));
      done(channel::confirmSelect);
      way.silence();
      Thread cut = new Thread(() -> {
        try {
          TimeUnit.MILLISECONDS.sleep(300);
        } catch (InterruptedException interrupted) {
          Thread.currentThread().interrupt();
        }
        way.cut();
      });
      cut.start();
      publish(channel, EXCHANGE, key, value, false);
    }
  }

  /** The client has no error for a message that came back: the confirmation follows, and the listener knows. */
  @Override
  public void writeRefused(String key) {
    Channel channel = channel();
    String[] back = new String[1];
    channel.addReturnListener(message -> back[0] = message.getReplyText());
    publish(channel, "", key, "", true);
    if (back[0] != null) {
      throw new UncheckedIOException(new IOException(back[0]));
    }
  }

  @Override
  public void writeWithoutRights(String key, String value) {
    String url = b.url().replace("guest:guest", "publisher:publisher");
    AntipodeRabbit.register(RabbitOptions.named(name()).tap(Tap.of(url, straight.queue())));
  }

  @Override
  public void wrapUnfit() {
    AntipodeRabbit.register(RabbitOptions.named(name()).tap(Tap.of(b.url(), b.queue())));
  }
}
