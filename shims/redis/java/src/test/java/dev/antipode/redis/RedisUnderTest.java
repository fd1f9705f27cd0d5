package dev.antipode.redis;

import static dev.antipode.redis.RedisServers.STORE;

import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.StoreOptions;
import dev.antipode.shim.Capabilities;
import dev.antipode.testing.StoreUnderTest;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;

/** Redis as the conformance kit drives it: values are a field of a hash, so that lineages rest beside them. */
final class RedisUnderTest extends StoreUnderTest implements AutoCloseable {
  private static final String FIELD = "value";
  private static final List<String> SERVERS = List.of("a", "b1", "b2");
  private static final Map<String, Duration> LAGS = Map.of("b1", Duration.ofMillis(5), "b2", Duration.ofMillis(20));
  private static final int MARK_PERIOD_MILLIS = 200;

  private RedisServers servers;
  private final Map<String, RedisClient> plain = new HashMap<>();
  private final Map<String, UnifiedJedis> wrapped = new HashMap<>();

  RedisUnderTest() {
    start();
  }

  private void start() {
    servers = new RedisServers("5ms", "20ms");
  }

  @Override
  public void close() {
    servers.close();
  }

  @Override
  public Capabilities capabilities() {
    return new RedisShim().capabilities();
  }

  @Override
  public String rightsCure() {
    return "+info";
  }

  @Override
  public String unfitCure() {
    return "Redis Cluster";
  }

  @Override
  public void begin() {
    Marks.periodMillis = MARK_PERIOD_MILLIS;
    List<String> urls = replicas().stream().map(servers::url).toList();
    for (String name : SERVERS) {
      plain.put(name, servers.client(name));
      wrapped.put(
          name,
          AntipodeRedis.wrap(
              plain.get(name),
              StoreOptions.named(name()).replicas(urls).rest(Capabilities.Rest.FIELD)));
    }
  }

  @Override
  public void recover(boolean spoiled) {
    Marks.periodMillis = 1000;
    servers.closeClients();
    if (spoiled) {
      servers.close();
      start();
      return;
    }
    LAGS.forEach((name, lag) -> servers.lab().lag(STORE, name, lag));
    servers.lab().heal();
  }

  @Override
  public String primary() {
    return servers.primary();
  }

  @Override
  public List<String> replicas() {
    return List.of("b1", "b2");
  }

  // Data

  @Override
  public void write(String key, String value) {
    wrapped.get(primary()).hset(key, FIELD, value);
  }

  @Override
  public String read(String key, String at) {
    return wrapped.get(at).hget(key, FIELD);
  }

  @Override
  public String look(String key, String at) {
    return plain.get(at).hget(key, FIELD);
  }

  @Override
  public void delete(String key) {
    wrapped.get(primary()).del(key);
  }

  @Override
  public void rawWrite(String key, String value) {
    plain.get(primary()).hset(key, FIELD, value);
  }

  @Override
  public void writeNothing() {
    if (wrapped.get(primary()).del(newKey("never there")) != 0) {
      throw new AssertionError("there was something");
    }
  }

  @Override
  public void transaction(InTransaction work) {
    try (AbstractTransaction jedis = wrapped.get(primary()).transaction(false)) {
      Opened opened = new Opened(jedis);
      work.run(opened);
      if (opened.wrote) {
        jedis.exec();
      }
    }
  }

  private static final class Opened implements Transaction {
    private final AbstractTransaction jedis;
    private boolean wrote;

    Opened(AbstractTransaction jedis) {
      this.jedis = jedis;
    }

    @Override
    public void read(String key) {
      jedis.watch(key);
      jedis.hget(key, FIELD).get();
    }

    @Override
    public void write(String key, String value) {
      if (!wrote) {
        jedis.multi();
      }
      wrote = true;
      jedis.hset(key, FIELD, value);
    }
  }

  // Links and servers

  @Override
  public void setLag(String replica, Duration lag) {
    servers.lab().lag(STORE, replica, lag);
  }

  @Override
  public void partition(String replica) {
    servers.lab().partition(STORE, replica);
  }

  @Override
  public void heal(String replica) {
    servers.lab().healSoon(STORE, replica);
  }

  @Override
  public void freeze(String server) {
    servers.lab().freeze(STORE, server);
  }

  @Override
  public void thaw(String server) {
    servers.lab().thaw(STORE, server);
  }

  @Override
  public void restart(String server) {
    servers.lab().restart(STORE, server);
  }

  @Override
  public void repoint(String replica, String source) {
    servers.lab().repoint(STORE, replica, source);
  }

  @Override
  public void promote(String replica, Runnable lost) {
    String old = primary();
    if (lost == null) {
      servers.lab().verb(STORE, "promote", List.of(replica), Map.of("lose", 0), () -> {});
    } else {
      servers.lab().promoteLosing(STORE, replica, lost);
    }
    if (replicas().contains(old)) {
      servers.lab().verb(STORE, "heal", List.of(), Map.of("wait", false), () -> {});
      servers.lab().repoint(STORE, old, replica);
    }
  }

  @Override
  public void waitMarked(Lineage lineage) {
    Ordered version = (Ordered) lineage.ofStore(name()).get(0).version();
    until(
        () -> {
          String mark = plain.get(primary()).hget(Marks.DEFAULT_KEY, version.epoch());
          Long found = mark == null ? null : Marks.positionOf(mark.getBytes(StandardCharsets.US_ASCII));
          return found != null && version.compareCounter(found) <= 0;
        },
        "a mark covers the write");
  }

  // Troubles

  @Override
  public void writeWithUnknownOutcome(String key, String value) {
    UnifiedJedis client =
        AntipodeRedis.wrap(servers.hasty(primary(), Duration.ofMillis(200)), StoreOptions.named(name()));
    client.ping();
    servers.lab().freeze(STORE, primary());
    try {
      client.hset(key, FIELD, value);
    } finally {
      servers.lab().thaw(STORE, primary());
      client.close();
    }
  }

  @Override
  public void writeRefused(String key) {
    plain.get(primary()).set(key, "no hash");
    write(key, "v");
  }

  @Override
  public void writeWithoutRights(String key, String value) {
    servers.lab().verb(STORE, "create_user", "app", "secret");
    RedisClient client =
        servers.client(primary(), DefaultJedisClientConfig.builder().user("app").password("secret"));
    AntipodeRedis.wrap(client, StoreOptions.named(name())).hset(key, FIELD, value);
  }

  @Override
  public void wrapUnfit() {
    try (LoneServer server = new LoneServer("--cluster-enabled", "yes");
        RedisClient client = RedisClient.create("127.0.0.1", server.port())) {
      AntipodeRedis.wrap(client, "cluster");
    }
  }
}
