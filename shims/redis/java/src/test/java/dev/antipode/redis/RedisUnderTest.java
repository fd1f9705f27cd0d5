package dev.antipode.redis;

import static dev.antipode.redis.RedisServers.STORE;

import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.lab.MovingAddress;
import dev.antipode.shim.Capabilities;
import dev.antipode.testing.StoreUnderTest;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import redis.clients.jedis.RedisClient;

/** Redis as the conformance kit drives it: values are a field of a hash, so that lineages rest beside them. */
final class RedisUnderTest extends StoreUnderTest implements AutoCloseable {
  private static final String FIELD = "value";
  private static final List<String> SERVERS = List.of("a", "b1", "b2");
  private static final Map<String, Duration> LAGS = Map.of("b1", Duration.ofMillis(5), "b2", Duration.ofMillis(20));
  private static final int MARK_PERIOD_MILLIS = 200;

  private RedisServers servers;
  private final Map<String, RedisClient> plain = new HashMap<>();
  private final Map<String, TestClient> wrapped = new HashMap<>();
  private final List<AutoCloseable> ending = new ArrayList<>();
  private final ClientKind kind;

  RedisUnderTest(ClientKind kind) {
    this.kind = kind;
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
      wrapped.put(name, kind.wrap(servers.url(name), options().replicas(urls)));
    }
  }

  private StoreOptions options() {
    return StoreOptions.named(name()).rest(Rest.FIELD);
  }

  @Override
  public void recover(boolean spoiled) {
    Marks.periodMillis = 1000;
    wrapped.values().forEach(TestClient::close);
    wrapped.clear();
    for (AutoCloseable each : ending) {
      try {
        each.close();
      } catch (Exception lost) {
        // so it is closed
      }
    }
    ending.clear();
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
    wrapped.get(primary()).call("HSET", key, FIELD, value);
  }

  @Override
  public String read(String key, String at) {
    return (String) wrapped.get(at).call("HGET", key, FIELD);
  }

  @Override
  public String look(String key, String at) {
    return plain.get(at).hget(key, FIELD);
  }

  @Override
  public void delete(String key) {
    wrapped.get(primary()).call("DEL", key);
  }

  @Override
  public void rawWrite(String key, String value) {
    plain.get(primary()).hset(key, FIELD, value);
  }

  @Override
  public void writeNothing() {
    if (!wrapped.get(primary()).call("DEL", newKey("never there")).equals(0L)) {
      throw new AssertionError("there was something");
    }
  }

  @Override
  public void transaction(TransactionBody work) {
    try (TestClient.Transaction transaction = wrapped.get(primary()).transaction()) {
      Opened opened = new Opened(transaction);
      work.run(opened);
      if (opened.wrote) {
        transaction.exec();
      }
    }
  }

  private static final class Opened implements Transaction {
    private final TestClient.Transaction transaction;
    private boolean wrote;

    Opened(TestClient.Transaction transaction) {
      this.transaction = transaction;
    }

    @Override
    public void read(String key) {
      transaction.watch(key);
      transaction.call("HGET", key, FIELD);
    }

    @Override
    public void write(String key, String value) {
      if (!wrote) {
        transaction.multi();
      }
      wrote = true;
      transaction.add("HSET", key, FIELD, value);
    }
  }

  // More clients

  @Override
  public Object wrapClient(String server, List<String> names, boolean waitOnRead) {
    StoreOptions options = StoreOptions.named(name()).waitOnRead(waitOnRead);
    TestClient client = kind.wrap(
        servers.url(server),
        Duration.ofSeconds(20),
        names == null ? options : options.replicas(names.stream().map(servers::url).toList()));
    ending.add(client);
    client.call("PING");
    return client;
  }

  @Override
  public Map<String, Function<String, Object>> reads(Object client) {
    TestClient open = (TestClient) client;
    Map<String, Function<String, Object>> ways = new LinkedHashMap<>();
    ways.put("HGET", key -> open.call("HGET", key, FIELD));
    ways.put("EVAL", key -> open.call("EVAL", "return redis.call('HGET', KEYS[1], 'value')", "1", key));
    ways.put("a batch", key -> {
      try (TestClient.Batch batch = open.batch()) {
        return orThrown(batch.add("HGET", key, FIELD).send().get(0));
      }
    });
    ways.put("a transaction", key -> {
      try (TestClient.Transaction transaction = open.transaction()) {
        transaction.multi();
        transaction.add("HGET", key, FIELD);
        return orThrown(transaction.exec().get(0));
      }
    });
    return ways;
  }

  private static Object orThrown(Object reply) {
    if (reply instanceof RuntimeException among) {
      throw among;
    }
    return reply;
  }

  @Override
  public Consumer<String> listMoving(String server) {
    MovingAddress address = new MovingAddress(servers.servers().get(server).port());
    ending.add(address);
    AntipodeRedis.register(StoreOptions.named(name()).replicas("redis://127.0.0.1:" + address.port()));
    return name -> address.lead(servers.servers().get(name).port());
  }

  /** Jedis connects when it is used, and Lettuce before it is wrapped. */
  @Override
  public Object wrapUnused(String server) {
    if (kind != ClientKind.JEDIS) {
      return null;
    }
    TestClient client = kind.wrap(servers.url(server), Duration.ofSeconds(20), StoreOptions.named(name()));
    ending.add(client);
    return client;
  }

  @Override
  public Map<String, String> exceptions() {
    return Map.of(
        "commit_inside_a_transaction", "a transaction of Redis has one EXEC, and nothing else commits in it",
        "past_moment", "Redis has no cursor or snapshot of a moment: each reply is of the moment of its command");
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
    try (TestClient client = kind.wrap(servers.url(primary()), Duration.ofSeconds(1), options().restNowhere())) {
      client.call("PING");
      servers.lab().freeze(STORE, primary());
      try {
        client.call("HSET", key, FIELD, value);
      } finally {
        servers.lab().thaw(STORE, primary());
      }
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
    String url = servers.url(primary()).replace("redis://", "redis://app:secret@");
    try (TestClient client = kind.wrap(url, options().restNowhere())) {
      client.call("HSET", key, FIELD, value);
    }
  }

  @Override
  public void wrapUnfit() {
    try (LoneServer server = new LoneServer("--cluster-enabled", "yes")) {
      kind.wrap("redis://127.0.0.1:" + server.port(), StoreOptions.named("cluster")).close();
    }
  }
}
