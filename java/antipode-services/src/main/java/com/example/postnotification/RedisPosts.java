package com.example.postnotification;

import dev.antipode.StoreOptions;
import dev.antipode.redis.AntipodeRedis;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;

/** A key a post, by Jedis. */
final class RedisPosts implements Posts {
  private static final int CONNECTIONS = 32;

  private final UnifiedJedis client;

  RedisPosts(Setup setup, String url) {
    UnifiedJedis plain = connect(url);
    StoreOptions options = StoreOptions.named(Setup.STORE).waitOnRead(setup.waitOnRead()).timeout(setup.timeout());
    client = setup.antipode() ? AntipodeRedis.wrap(plain, options) : plain;
  }

  /** A plain client of a server. */
  static UnifiedJedis connect(String url) {
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setMaxTotal(CONNECTIONS);
    pool.setMaxIdle(CONNECTIONS);
    URI place = URI.create(url);
    return RedisClient.builder().hostAndPort(place.getHost(), place.getPort()).poolConfig(pool).build();
  }

  static void register(Setup setup) {
    AntipodeRedis.register(StoreOptions.named(Setup.STORE).replicas(setup.replicas().values().toArray()));
  }

  @Override
  public void write(String key, byte[] body) {
    client.set(bytes(key), body);
  }

  @Override
  public byte[] read(String key) {
    return client.get(bytes(key));
  }

  private static byte[] bytes(String key) {
    return key.getBytes(StandardCharsets.UTF_8);
  }
}
