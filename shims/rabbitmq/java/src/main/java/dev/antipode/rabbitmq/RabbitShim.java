package dev.antipode.rabbitmq;

import com.rabbitmq.client.ShutdownSignalException;
import dev.antipode.Opaque;
import dev.antipode.Rest;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import java.io.IOException;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;

/**
 * What knows RabbitMQ: a message is visible at a broker when the broker has got it. Its tap gave it, or it was consumed by
 * this process. That does not end: a message that has arrived stays arrived, also after it was consumed.
 */
public final class RabbitShim extends Shim {
  private static final int OWN_REMEMBERED = Tap.REMEMBERED / 5;
  private static final int MOST_KEY = 80;
  private static final String NO_MARK = "messages have opaque marks; this identifier was not made by a RabbitMQ shim";
  private static final Capabilities CAPABILITIES =
      Capabilities.opaque().push(true).rest(Rest.NATIVE).tap(true);

  private final Map<String, Marks> arrived = new ConcurrentHashMap<>();
  private final Set<ChannelLocation> channels = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

  /** The memory of one tap in this process, and its connection while somebody waits. */
  static final class Session {
    private final Tap tap;
    private final TapMemory memory;
    private volatile TapReader reader;

    Session(Tap tap) {
      this.tap = tap;
      this.memory = new TapMemory(tap.remember());
    }

    TapMemory memory() {
      return memory;
    }

    TapReader reader() {
      return reader;
    }
  }

  /** Found by ServiceLoader, too. */
  public RabbitShim() {}

  @Override
  public String kind() {
    return "rabbitmq";
  }

  /** Return false: a tap shows each message once, so a new connection would not show it again (BAR-55). */
  @Override
  public boolean reconnects() {
    return false;
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public Set<String> schemes() {
    return Set.of("amqp", "amqps");
  }

  @Override
  public String address(Object target) {
    return target instanceof Broker broker ? broker.address() : Tap.of(target).address();
  }

  @Override
  public boolean unreachable(Exception error) {
    return error instanceof ShutdownSignalException || error instanceof TimeoutException || super.unreachable(error);
  }

  /** A tracked message was consumed by this process from this broker; null where that cannot be told. */
  void arrived(Broker broker, String mark) {
    if (broker == null) {
      return;
    }
    arrived.computeIfAbsent(Broker.place(broker.address()), place -> new Marks(OWN_REMEMBERED)).add(mark);
  }

  /** This process may consume by a channel. */
  void consumesBy(ChannelLocation channel) {
    channels.add(channel);
  }

  /**
   * Whether it was consumed at the broker that is now used in the place of this one: a cluster's next node, where the client's
   * recovery has taken all that was there.
   */
  private boolean wasConsumedInItsPlace(String mark, Broker broker) {
    List<Broker> now;
    synchronized (channels) {
      now = channels.stream()
          .filter(channel -> channel.home().equals(broker) && channel.isOpen())
          .map(ChannelLocation::now)
          .distinct()
          .toList();
    }
    return now.size() == 1 && wasConsumed(mark, now.get(0).address());
  }

  private boolean wasConsumed(String mark, String broker) {
    Marks marks = arrived.get(Broker.place(broker));
    return marks != null && marks.contains(mark);
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) throws Exception {
    if (server.target() instanceof Broker broker) {
      return ids.stream().map(id -> withoutTap(id, broker)).toList();
    }
    Session session = session(server);
    TapReader reader = session.reader;
    if (reader == null) {
      throw new IOException("the tap is not being read");
    }
    reader.check(server.askTimeout());
    return ids.stream().map(id -> byTap(id, session)).toList();
  }

  @Override
  public Watch watch(Server server) throws Exception {
    if (server.target() instanceof Broker) {
      throw new UnsupportedOperationException("it has no tap");
    }
    Session session = session(server);
    TapReader reader = new TapReader(session.tap, session.memory, server::changed, server.askTimeout());
    reader.start(server.askTimeout());
    session.reader = reader;
    return reader::close;
  }

  /** Gives up the connection; what has arrived is not forgotten with it. */
  @Override
  public void close(Server server) {
    if (server.session() instanceof Session session) {
      session.reader = null;
    }
  }

  private static Session session(Server server) {
    if (server.session() instanceof Session session) {
      return session;
    }
    Session made = new Session(Tap.of(server.target()));
    server.session(made);
    return made;
  }

  private Visibility byTap(WriteId id, Session session) {
    if (!(id.version() instanceof Opaque version)) {
      return Visibility.unproven(NO_MARK);
    }
    if (session.memory.want(version.mark()) || wasConsumed(version.mark(), session.tap.broker())) {
      return Visibility.VISIBLE;
    }
    return Visibility.notYet("a message to %s is not among the last %d of %s"
        .formatted(words(id), session.memory.size(), session.tap.queue()));
  }

  private Visibility withoutTap(WriteId id, Broker broker) {
    if (!(id.version() instanceof Opaque version)) {
      return Visibility.unproven(NO_MARK);
    }
    if (wasConsumed(version.mark(), broker.address()) || wasConsumedInItsPlace(version.mark(), broker)) {
      return Visibility.VISIBLE;
    }
    return Visibility.unproven(("nobody can tell whether a message to %s has arrived: this process reads no tap of %s; "
            + "give it one by AntipodeRabbit.register(RabbitOptions.named(\"%s\").tap(…))")
        .formatted(words(id), store().name(), store().name()));
  }

  private static String words(WriteId id) {
    String text = id.key().text();
    return text.length() <= MOST_KEY ? text : text.substring(0, MOST_KEY);
  }
}
