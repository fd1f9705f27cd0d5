package dev.antipode.redis;

import dev.antipode.StoreOptions;
import io.lettuce.core.RedisURI;
import java.time.Duration;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;

/** The clients that are wrapped, and the faces of Lettuce. */
enum ClientKind {
  JEDIS,
  LETTUCE,
  LETTUCE_ASYNC,
  LETTUCE_REACTIVE;

  /** A wrapped client of a server. */
  TestClient wrap(String url, StoreOptions options) {
    return wrap(url, Duration.ofSeconds(20), true, options);
  }

  /** A wrapped client that gives up after this long, and sends at once. */
  TestClient wrap(String url, Duration patience, StoreOptions options) {
    return wrap(url, patience, false, options);
  }

  private TestClient wrap(String url, Duration patience, boolean tests, StoreOptions options) {
    RedisURI place = RedisURI.create(url);
    place.setTimeout(patience);
    if (this != JEDIS) {
      return new LettuceTestClient(this, place, options);
    }
    char[] password = place.getCredentialsProvider().resolveCredentials().block().getPassword();
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setTestOnBorrow(tests); // none of before a restart
    RedisClient jedis = RedisClient.builder()
        .poolConfig(pool)
        .hostAndPort(new HostAndPort(place.getHost(), place.getPort()))
        .clientConfig(DefaultJedisClientConfig.builder()
            .socketTimeoutMillis((int) patience.toMillis())
            .user(place.getCredentialsProvider().resolveCredentials().block().getUsername())
            .password(password == null ? null : new String(password))
            .build())
        .build();
    return JedisTestClient.wrap(jedis, options);
  }
}
