package dev.antipode.redis;

import dev.antipode.lab.Lab;
import dev.antipode.lab.LabServer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;

/** A lab of Redis servers, and plain clients of them. */
final class RedisServers implements AutoCloseable {
  static final String STORE = "redis";

  private final Lab lab;
  private final List<RedisClient> clients = new ArrayList<>();

  RedisServers(String... lags) {
    lab = Lab.of(STORE).replicas(lags.length).lag(lags).up();
  }

  Lab lab() {
    return lab;
  }

  String url(String server) {
    return lab.server(STORE, server).url();
  }

  String primary() {
    return lab.primary(STORE);
  }

  /** The servers that follow the primary now. */
  List<String> replicas() {
    return lab.servers(STORE).values().stream()
        .filter(server -> server.role().equals("replica"))
        .map(LabServer::name)
        .toList();
  }

  /** A new plain client; closed with the others. */
  RedisClient client(String server) {
    return client(server, DefaultJedisClientConfig.builder());
  }

  /** A new plain client, which never uses a connection of before a restart. */
  RedisClient client(String server, DefaultJedisClientConfig.Builder config) {
    return client(server, config, true);
  }

  private RedisClient client(String server, DefaultJedisClientConfig.Builder config, boolean tests) {
    LabServer found = lab.server(STORE, server);
    ConnectionPoolConfig pool = new ConnectionPoolConfig();
    pool.setTestOnBorrow(tests);
    RedisClient client = RedisClient.builder()
        .poolConfig(pool)
        .hostAndPort(new HostAndPort(found.host(), found.port()))
        .clientConfig(config.build())
        .build();
    clients.add(client);
    return client;
  }

  /** A client that gives up soon, and sends at once. */
  RedisClient hasty(String server, Duration patience) {
    return client(
        server, DefaultJedisClientConfig.builder().socketTimeoutMillis((int) patience.toMillis()), false);
  }

  void closeClients() {
    clients.forEach(RedisClient::close);
    clients.clear();
  }

  /** Waits for a condition. */
  static void until(BooleanSupplier condition, String what) {
    long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
    while (!condition.getAsBoolean()) {
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

  Map<String, LabServer> servers() {
    return lab.servers(STORE);
  }

  @Override
  public void close() {
    closeClients();
    lab.close();
  }
}
