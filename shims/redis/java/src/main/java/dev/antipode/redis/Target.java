package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.Socket;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.function.Supplier;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.DefaultJedisSocketFactory;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;
import redis.clients.jedis.providers.SentineledConnectionProvider;
import redis.clients.jedis.util.JedisURIHelper;
import redis.clients.jedis.util.Pool;

/**
 * How to reach a Redis server beside the application's own client: with its address, user and TLS.
 *
 * @param address its name for people and for telling servers apart: no credentials
 * @param config the client's own, for user, database and TLS
 * @param place where it is now; with Sentinels it moves
 */
record Target(String address, JedisClientConfig config, Supplier<HostAndPort> place) {

  /** A new socket of our own; throws where the server cannot be reached within the time. */
  Socket connect(int timeoutMillis) throws IOException {
    JedisClientConfig brief = DefaultJedisClientConfig.builder()
        .from(config)
        .connectionTimeoutMillis(timeoutMillis)
        .socketTimeoutMillis(timeoutMillis)
        .build();
    try {
      return new DefaultJedisSocketFactory(place.get(), brief).createSocket();
    } catch (JedisConnectionException error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  /**
   * The target behind a URL or a client.
   *
   * @throws ConfigurationException for what is neither
   */
  static Target of(Object what) {
    if (what instanceof Target target) {
      return target;
    }
    if (what instanceof String url) {
      return ofUrl(url);
    }
    if (what instanceof URI url) {
      return ofUrl(url.toString());
    }
    if (what instanceof UnifiedJedis client) {
      return ofProvider(Internals.provider(client));
    }
    throw new ConfigurationException("no Redis server: want a URL or a UnifiedJedis, not " + what);
  }

  private static Target ofUrl(String url) {
    try {
      URI parsed = new URI(url);
      if (JedisURIHelper.isValid(parsed)
          && (JedisURIHelper.isRedisScheme(parsed) || JedisURIHelper.isRedisSSLScheme(parsed))) {
        return fixed(JedisURIHelper.getHostAndPort(parsed), DefaultJedisClientConfig.builder(parsed).build());
      }
    } catch (URISyntaxException | IllegalArgumentException error) {
      throw new ConfigurationException("no server's URL: " + withoutCredentials(url), error);
    }
    throw new ConfigurationException("no server's URL: " + withoutCredentials(url) + ": want redis://host:port");
  }

  private static String withoutCredentials(String url) {
    return url.substring(url.lastIndexOf('@') + 1);
  }

  private static Target ofProvider(ConnectionProvider provider) {
    if (provider instanceof PooledConnectionProvider pooled) {
      Pool<Connection> pool = pooled.getPool();
      if (pool.getFactory() instanceof ConnectionFactory factory) {
        Connection.Builder builder = Internals.get(ConnectionFactory.class, "connectionBuilder", factory);
        if (builder.getSocketFactory() instanceof DefaultJedisSocketFactory sockets) {
          return fixed(sockets.getHostAndPort(), builder.getClientConfig());
        }
      }
    }
    if (provider instanceof SentineledConnectionProvider sentinels) {
      JedisClientConfig config =
          Internals.get(SentineledConnectionProvider.class, "masterClientConfig", sentinels);
      String service = Internals.get(SentineledConnectionProvider.class, "masterName", sentinels);
      return new Target(
          "sentinel://" + service + "/primary" + database(config), config, sentinels::getCurrentMaster);
    }
    throw new ConfigurationException(
        "where " + provider.getClass().getName() + " connects to is not known: wrap a client of a fixed server or of "
            + "Sentinels");
  }

  private static Target fixed(HostAndPort place, JedisClientConfig config) {
    String scheme = config.isSsl() ? "rediss" : "redis";
    String host = place.getHost().contains(":") ? "[" + place.getHost() + "]" : place.getHost();
    return new Target(scheme + "://" + host + ":" + place.getPort() + database(config), config, () -> place);
  }

  private static String database(JedisClientConfig config) {
    return config.getDatabase() == 0 ? "" : "/" + config.getDatabase();
  }

  @Override
  public String toString() {
    return address;
  }

  /** What Jedis keeps to itself, and a wrapped client has to share. */
  static final class Internals {
    private Internals() {}

    static ConnectionProvider provider(UnifiedJedis client) {
      return get(UnifiedJedis.class, "provider", client);
    }

    @SuppressWarnings("unchecked") // the field's own type
    static <T> T get(Class<?> owner, String name, Object instance) {
      try {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        return (T) field.get(instance);
      } catch (ReflectiveOperationException | RuntimeException error) {
        throw new ConfigurationException(
            "this version of Jedis has no " + owner.getSimpleName() + "." + name + ": Antipode was made for 8.0", error);
      }
    }
  }
}
