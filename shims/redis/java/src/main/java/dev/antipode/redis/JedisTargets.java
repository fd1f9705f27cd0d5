package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;
import javax.net.ssl.SSLSocket;
import org.apache.commons.pool2.PooledObject;
import org.apache.commons.pool2.impl.GenericObjectPool;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.DefaultJedisSocketFactory;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.HostAndPortMapper;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.RedisCredentials;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;
import redis.clients.jedis.providers.SentineledConnectionProvider;

/** Where a client of Jedis connects to, and what it keeps to itself. */
final class JedisTargets {
  private static final Field SOCKET = field(Connection.class, "socket"); // looked at whenever a connection is handed out
  private static final Field HELD = field(GenericObjectPool.class, "allObjects");
  private static final Method ENCRYPTION =
      method(DefaultJedisSocketFactory.class, "createSslSocket", HostAndPort.class, Socket.class);

  private JedisTargets() {}

  /** The target of a UnifiedJedis. */
  static Target of(Object client) {
    return ofProvider(provider((UnifiedJedis) client));
  }

  /** Return what decides where a client connects to now: the application may change it (BAR-52). */
  static Object lead(UnifiedJedis client) {
    Connection.Builder builder = builder(provider(client));
    if (builder == null || !(builder.getSocketFactory() instanceof DefaultJedisSocketFactory sockets)) {
      return null;
    }
    try {
      return mapped(mapper(sockets), sockets.getHostAndPort());
    } catch (RuntimeException | Error error) { // the application's mapper: equal to nothing, until it says a place
      return new Object();
    }
  }

  private static Connection.Builder builder(ConnectionProvider provider) {
    return provider instanceof PooledConnectionProvider pooled
        && pooled.getPool().getFactory() instanceof ConnectionFactory factory
            ? get(ConnectionFactory.class, "connectionBuilder", factory)
            : null;
  }

  private static Target ofProvider(ConnectionProvider provider) {
    Connection.Builder builder = builder(provider);
    if (builder != null && builder.getSocketFactory() instanceof DefaultJedisSocketFactory sockets) {
      Target said = fixed(builder.getClientConfig(), mapper(sockets), sockets.getHostAndPort());
      return sockets.getClass() == DefaultJedisSocketFactory.class ? said : bySockets(said, sockets);
    }
    if (provider instanceof SentineledConnectionProvider sentinels) {
      return ofSentinels(sentinels);
    }
    throw new ConfigurationException(
        "AP501",
        "where " + provider.getClass().getName() + " connects to is not known: wrap a client of a fixed server or of "
            + "Sentinels");
  }

  private static Target fixed(JedisClientConfig config, HostAndPort said) {
    return fixed(config, config.getHostAndPortMapper(), said);
  }

  /** The server to which a mapper leads now, and not the one that was said: that may be another one of the store (BAR-52). */
  private static Target fixed(JedisClientConfig config, HostAndPortMapper mapper, HostAndPort said) {
    HostAndPort place = mapped(mapper, said);
    boolean isTls = config.isSsl() || config.getSslOptions() != null; // each alone makes Jedis encrypt
    return Target.fixed(
        isTls, place.getHost(), place.getPort(), dial(config, () -> place), credentials(config), config.getDatabase());
  }

  private static HostAndPort mapped(HostAndPortMapper mapper, HostAndPort said) {
    HostAndPort place = mapper == null ? null : mapper.getHostAndPort(said);
    return place == null ? said : place;
  }

  /** The one that connections are made by: their factory's configuration may be another than their own. */
  private static HostAndPortMapper mapper(DefaultJedisSocketFactory sockets) {
    return get(DefaultJedisSocketFactory.class, "hostAndPortMapper", sockets);
  }

  /** Return whether a client's words say where its connections lead: the sockets are Jedis' own. */
  static boolean leadsPlainly(ConnectionProvider client) {
    Connection.Builder builder = builder(client);
    return builder != null && builder.getSocketFactory().getClass() == DefaultJedisSocketFactory.class;
  }

  /** Return the server that a client's connection has reached; null where that client's target can be no other one. */
  static Target reachedBy(ConnectionProvider client, Target target, Socket socket, InetSocketAddress remote) {
    Connection.Builder builder = builder(client);
    if (builder == null || !(builder.getSocketFactory() instanceof DefaultJedisSocketFactory sockets)) {
      return null; // Sentinels say it themselves
    }
    if (target.leadsOnlyTo(remote)) {
      return null;
    }
    Target reached = arrivedAt(builder.getClientConfig(), sockets, socket, remote);
    if (sockets.getClass() == DefaultJedisSocketFactory.class) {
      return reached;
    }
    Target.Dial dial = timeoutMillis -> { // it may need that way, as through a tunnel
      Socket made = bySockets(sockets, timeoutMillis);
      if (remote.equals(made.getRemoteSocketAddress())) {
        return made;
      }
      made.close();
      return reached.connect(timeoutMillis);
    };
    return new Target(reached.address(), dial, reached.identity(), reached.database());
  }

  private static Target arrivedAt(
      JedisClientConfig config, DefaultJedisSocketFactory sockets, Socket socket, InetSocketAddress remote) {
    String host = remote.getAddress().getHostAddress();
    Target.Dial plain = Target.plain(host, remote.getPort());
    Target.Dial dial =
        socket instanceof SSLSocket tls ? tls(plain, sockets, named(tls, host), remote.getPort()) : plain;
    return Target.fixed(
        socket instanceof SSLSocket, host, remote.getPort(), dial, credentials(config), config.getDatabase());
  }

  /** Return the name that a connection's certificate had to have: certificates name no address (BAR-52). */
  private static String named(SSLSocket socket, String otherwise) {
    String name = socket.getSession().getPeerHost();
    return name == null ? otherwise : name;
  }

  /** A way to a place whose certificate has to name this host, by the settings of the application's own sockets. */
  private static Target.Dial tls(Target.Dial place, DefaultJedisSocketFactory sockets, String host, int port) {
    return timeoutMillis -> {
      Socket open = place.connect(timeoutMillis);
      boolean isReady = false;
      try {
        SSLSocket made = (SSLSocket) ENCRYPTION.invoke(sockets, new HostAndPort(host, port), open);
        made.startHandshake();
        isReady = true;
        return made;
      } catch (InvocationTargetException error) { // its verifier of names, or its store of keys
        throw new IOException(error.getCause().getMessage(), error.getCause());
      } catch (IllegalAccessException error) {
        throw new IllegalStateException(error); // it was made accessible
      } finally {
        if (!isReady) {
          open.close();
        }
      }
    };
  }

  /** One whose own way to make sockets may lead elsewhere than it says: ours are made by it, too (BAR-52). */
  private static Target bySockets(Target said, DefaultJedisSocketFactory sockets) {
    String address = said.address() + " by " + sockets.getClass().getName();
    return new Target(
        address, timeoutMillis -> bySockets(sockets, timeoutMillis), said.identity(), said.database());
  }

  private static Socket bySockets(DefaultJedisSocketFactory sockets, int timeoutMillis) throws IOException {
    try {
      Socket made = sockets.createSocket();
      made.setSoTimeout(timeoutMillis);
      return made;
    } catch (JedisConnectionException error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  private static Target ofSentinels(SentineledConnectionProvider provider) {
    JedisClientConfig config = get(SentineledConnectionProvider.class, "masterClientConfig", provider);
    JedisClientConfig ofSentinels = get(SentineledConnectionProvider.class, "sentinelClientConfig", provider);
    Collection<?> listeners = get(SentineledConnectionProvider.class, "sentinelListeners", provider);
    Sentinels sentinels = new Sentinels(
        get(SentineledConnectionProvider.class, "masterName", provider),
        listeners.stream()
            .map(each -> fixed(ofSentinels, JedisTargets.<HostAndPort>get(listener(), "node", each)))
            .toList());
    Target.ServerNaming naming = timeoutMillis -> {
      Sentinels.Place primary = sentinels.primary(timeoutMillis);
      HostAndPort named = new HostAndPort(primary.host(), primary.port());
      return Stream.of(named, provider.getCurrentMaster()) // Jedis may not have heard of it yet, and go to the one before
          .distinct()
          .map(place -> fixed(config, place))
          .toList();
    };
    return new Target(
        sentinels.address(config.getDatabase()),
        dial(config, () -> mapped(config.getHostAndPortMapper(), provider.getCurrentMaster())),
        credentials(config),
        config.getDatabase(),
        naming);
  }

  private static Class<?> listener() {
    return Stream.of(SentineledConnectionProvider.class.getDeclaredClasses())
        .filter(each -> each.getSimpleName().equals("SentinelListener"))
        .findFirst()
        .orElseThrow(() -> new ConfigurationException(
            "AP501", "this version of Jedis has no SentinelListener: Antipode was made for 8.0"));
  }

  private static Target.Dial dial(JedisClientConfig config, Supplier<HostAndPort> place) {
    return timeoutMillis -> {
      JedisClientConfig brief = DefaultJedisClientConfig.builder()
          .from(config)
          .hostAndPortMapper(null) // its answer is the place
          .connectionTimeoutMillis(timeoutMillis)
          .socketTimeoutMillis(timeoutMillis)
          .build();
      try {
        return new DefaultJedisSocketFactory(place.get(), brief).createSocket();
      } catch (JedisConnectionException error) {
        throw new IOException(error.getMessage(), error);
      }
    };
  }

  private static Target.Identity credentials(JedisClientConfig config) {
    return timeoutMillis -> {
      RedisCredentials found =
          config.getCredentialsProvider() == null ? null : config.getCredentialsProvider().get();
      return found == null || found.getPassword() == null
          ? null
          : new Credentials(found.getUser(), new String(found.getPassword()));
    };
  }

  /** Return the socket of a connection; null where it has none. */
  static Socket socket(Connection connection) {
    try {
      return (Socket) SOCKET.get(connection);
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error); // it was made accessible
    }
  }

  /** Return the sockets of the connections that a client's pool holds, idle or handed out, and that are open. */
  static List<Socket> sockets(ConnectionProvider client) {
    if (!(client instanceof PooledConnectionProvider pooled)) {
      return List.of(); // Sentinels name the server, and their provider clears its pool when they name another
    }
    try {
      Collection<?> held = ((Map<?, ?>) HELD.get(pooled.getPool())).values();
      return held.stream()
          .map(each -> socket((Connection) ((PooledObject<?>) each).getObject()))
          .filter(socket -> socket != null && !socket.isClosed())
          .toList();
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error); // it was made accessible
    }
  }

  static ConnectionProvider provider(UnifiedJedis client) {
    return get(UnifiedJedis.class, "provider", client);
  }

  /** What Jedis keeps to itself, and a wrapped client has to share. */
  @SuppressWarnings("unchecked") // the field's own type
  static <T> T get(Class<?> owner, String name, Object instance) {
    try {
      return (T) field(owner, name).get(instance);
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error); // it was made accessible
    }
  }

  private static Field field(Class<?> owner, String name) {
    try {
      Field field = owner.getDeclaredField(name);
      field.setAccessible(true);
      return field;
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw lacks(owner, name, error);
    }
  }

  private static Method method(Class<?> owner, String name, Class<?>... kinds) {
    try {
      Method method = owner.getDeclaredMethod(name, kinds);
      method.setAccessible(true);
      return method;
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw lacks(owner, name, error);
    }
  }

  private static ConfigurationException lacks(Class<?> owner, String name, Exception error) {
    return new ConfigurationException(
        "AP501",
        "this version of Jedis has no " + owner.getSimpleName() + "." + name + ": Antipode was made for 8.0", error);
  }
}
