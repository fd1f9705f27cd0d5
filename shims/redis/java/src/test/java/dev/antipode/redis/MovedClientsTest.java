package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.StoreResult;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.internal.engine.Discovery;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.RegisteredStore;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.SocketAddressResolver;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.DefaultJedisSocketFactory;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.HostAndPortMapper;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.providers.PooledConnectionProvider;

/** Clients that lead elsewhere than they did when they were wrapped, or than they say (BAR-52). */
class MovedClientsTest extends WithServers {
  private static final JedisClientConfig CONFIG = DefaultJedisClientConfig.builder().build();

  private static HostAndPort at(String server) {
    return new HostAndPort("127.0.0.1", servers.servers().get(server).port());
  }

  private static UnifiedJedis jedis(DefaultJedisSocketFactory sockets) {
    ConnectionFactory factory = new ConnectionFactory(sockets, CONFIG);
    return redis.clients.jedis.RedisClient.builder()
        .connectionProvider(new PooledConnectionProvider(factory, new GenericObjectPoolConfig<Connection>()))
        .build();
  }

  /** The first barrier waits at a replica that is cut off, and passes when it is not any more. */
  private void waitsAtTheReplica() {
    UnifiedJedis writer = AntipodeRedis.wrap(plain, StoreOptions.named(STORE));
    servers.lab().partition("redis", "b2");
    Lineage lineage;
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      lineage = scope.lineage();
    }
    BarrierOptions options =
        BarrierOptions.defaults().lineage(lineage).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
    try {
      StoreResult late = Antipode.barrier(options.timeout(Duration.ofMillis(400))).store(STORE);
      assertThat(late.verdict()).as(late.toString()).isEqualTo(Verdict.TIMED_OUT);
    } finally {
      servers.lab().heal("redis", "b2");
    }
    BarrierResult passed = Antipode.barrier(options.timeout(Duration.ofSeconds(60)));
    assertThat(passed.complete()).as(passed.explain()).isTrue();
  }

  @Test
  void jedisWhosePlaceIsChanged_BAR_52() {
    DefaultJedisSocketFactory sockets = new DefaultJedisSocketFactory(at("a"), CONFIG);
    try (UnifiedJedis moved = jedis(sockets)) {
      UnifiedJedis reader = AntipodeRedis.wrap(moved, StoreOptions.named(STORE));
      sockets.updateHostAndPort(at("b2"));
      waitsAtTheReplica();
      assertThat(reader.get("k")).isEqualTo("v");
    }
  }

  /** What it reads behind the pass is of the server where it leads by then. */
  @Test
  void jedisWhosePlaceIsChangedWhileABarrierWaits_BAR_65() {
    DefaultJedisSocketFactory sockets = new DefaultJedisSocketFactory(at("b1"), CONFIG);
    try (UnifiedJedis moved = jedis(sockets)) {
      UnifiedJedis reader = AntipodeRedis.wrap(moved, StoreOptions.named(STORE));
      BarrierOptions options = BarrierOptions.defaults().timeout(Duration.ofSeconds(60));
      assertThat(Antipode.barrier(options.lineage(written("before"))).complete()).isTrue();
      servers.lab().partition("redis", "b1");
      servers.lab().partition("redis", "b2");
      CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(options.lineage(written("v")));
      RegisteredStore store = Registry.current().need(STORE);
      RedisServers.until(() -> store.parked() == 1, "the barrier waits");
      sockets.updateHostAndPort(at("b2"));
      servers.lab().heal("redis", "b1");
      RedisServers.until(
          () -> store.serverAt("redis://" + at("b2")) != null || waiting.isDone(), "the client is looked at again");
      assertThat(waiting).isNotDone();
      servers.lab().heal("redis", "b2");
      assertThat(waiting.join().satisfied()).isTrue();
      assertThat(reader.get("k")).isEqualTo("v");
    } finally {
      servers.lab().heal("redis", "b1");
      servers.lab().heal("redis", "b2");
    }
  }

  private Lineage written(String value) {
    try (LineageScope scope = Antipode.scope()) {
      AntipodeRedis.wrap(plain, StoreOptions.named(STORE)).set("k", value);
      return scope.lineage();
    }
  }

  /** It is judged as long as the old connection is open, though the client leads elsewhere since; then results are complete. */
  @Test
  void jedisWhoseConnectionIsAtTheServerOfBefore_BAR_62() {
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(30));
    DefaultJedisSocketFactory sockets = new DefaultJedisSocketFactory(at("a"), CONFIG);
    try (UnifiedJedis moved = jedis(sockets)) {
      UnifiedJedis reader = AntipodeRedis.wrap(moved, StoreOptions.named(STORE));
      sockets.updateHostAndPort(at("b2"));
      ((PooledConnectionProvider) JedisTargets.provider(moved)).getPool().clear();
      assertThat(reader.get("other")).isNull();
      sockets.updateHostAndPort(at("a"));
      for (int turn = 0; turn < 3; turn++) {
        waitsAtTheReplica();
      }
      ((PooledConnectionProvider) JedisTargets.provider(moved)).getPool().clear();
      isCompleteWithout("b2");
    } finally {
      Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
    }
  }

  /** Results become complete without that server, and it is not left out either. */
  private void isCompleteWithout(String server) {
    Antipode.configure(Settings.defaults().leftServer(Duration.ZERO));
    UnifiedJedis writer = AntipodeRedis.wrap(plain, StoreOptions.named(STORE));
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      BarrierOptions options = BarrierOptions.defaults().lineage(scope.lineage())
          .timeout(Duration.ofSeconds(1)).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
      RedisServers.until(() -> {
        BarrierResult result = Antipode.barrier(options);
        return result.complete() && result.store(STORE).servers().stream()
            .noneMatch(each -> each.address().contains(":" + at(server).getPort()));
      }, "it is complete without " + server);
    }
  }

  @Test
  void jedisThatLeadsElsewhereThanItSays_BAR_52() {
    DefaultJedisSocketFactory sockets = new DefaultJedisSocketFactory(at("a"), CONFIG) {
      @Override
      protected HostAndPort getSocketHostAndPort() {
        return at("b2");
      }
    };
    try (UnifiedJedis elsewhere = jedis(sockets)) {
      UnifiedJedis reader = AntipodeRedis.wrap(elsewhere, StoreOptions.named(STORE));
      waitsAtTheReplica();
      assertThat(reader.get("k")).isEqualTo("v");
    }
  }

  private static UnifiedJedis mapped(HostAndPortMapper mapper) {
    JedisClientConfig config = DefaultJedisClientConfig.builder().hostAndPortMapper(mapper).build();
    return jedis(new DefaultJedisSocketFactory(at("a"), config));
  }

  /** What it says is the address of a server that the store knows already, and that would be judged in its place. */
  @Test
  void jedisWithAMapper_BAR_52() {
    AntipodeRedis.wrap(plain, StoreOptions.named(STORE));
    try (UnifiedJedis mapped = mapped(said -> at("b2"))) {
      UnifiedJedis reader = AntipodeRedis.wrap(mapped, StoreOptions.named(STORE));
      waitsAtTheReplica();
      assertThat(reader.get("k")).isEqualTo("v");
    }
  }

  @Test
  void jedisWhoseMapperComesToSayOtherwise_BAR_52() {
    AtomicReference<String> leads = new AtomicReference<>("a");
    try (UnifiedJedis mapped = mapped(said -> at(leads.get()))) {
      UnifiedJedis reader = AntipodeRedis.wrap(mapped, StoreOptions.named(STORE));
      leads.set("b2");
      waitsAtTheReplica();
      assertThat(reader.get("k")).isEqualTo("v");
    }
  }

  /** Jedis connects when a client is made; what that connection has reached is known when it is handed out. */
  @Test
  void jedisWhoseConnectionLedElsewhere_BAR_52() {
    AtomicReference<String> leads = new AtomicReference<>("b2");
    try (UnifiedJedis mapped = mapped(said -> at(leads.get()))) {
      leads.set("a");
      UnifiedJedis reader = AntipodeRedis.wrap(mapped, StoreOptions.named(STORE));
      reader.get("other");
      waitsAtTheReplica();
      assertThat(reader.get("k")).isEqualTo("v");
    }
  }

  @Test
  void jedisWhoseMapperFailsIsNotOpened_BAR_52() {
    AtomicReference<String> leads = new AtomicReference<>("a");
    HostAndPortMapper mapper = said -> {
      if (leads.get() == null) {
        throw new IllegalStateException("no map");
      }
      return at(leads.get());
    };
    try (UnifiedJedis mapped = mapped(mapper); LineageScope open = Antipode.scope()) {
      UnifiedJedis reader = AntipodeRedis.wrap(mapped, StoreOptions.named(STORE));
      reader.set("k", "v");
      BarrierOptions options = BarrierOptions.defaults().onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
      leads.set(null);
      StoreResult asked = Antipode.barrier(options.timeout(Duration.ofMillis(400))).store(STORE);
      assertThat(asked.kind()).as(asked.toString()).isEqualTo(UnprovenKind.NOT_OPENED);
      leads.set("a");
      BarrierResult passed = Antipode.barrier(options.timeout(Duration.ofSeconds(60)));
      assertThat(passed.complete()).as(passed.explain()).isTrue();
    }
  }

  /** The URI says one server, and the client's own resolver leads to another. */
  @Test
  void lettuceWithAResolver_BAR_52() {
    SocketAddressResolver resolver = new SocketAddressResolver() {
      @Override
      public SocketAddress resolve(RedisURI place) {
        return new InetSocketAddress("127.0.0.1", at("b2").getPort());
      }
    };
    ClientResources resources = LettuceResources.SHARED.mutate().socketAddressResolver(resolver).build();
    RedisClient client = RedisClient.create(resources, RedisURI.create("127.0.0.1", at("a").getPort()));
    try (StatefulRedisConnection<String, String> open = client.connect()) {
      StatefulRedisConnection<String, String> reader = AntipodeLettuce.wrap(open, StoreOptions.named(STORE));
      waitsAtTheReplica();
      assertThat(reader.sync().get("k")).isEqualTo("v");
    } finally {
      client.shutdown();
    }
  }

  /** Lettuce looks at its URI again when it makes a connection anew. */
  @Test
  void lettuceWhoseConnectionIsMadeAnewElsewhere_BAR_52() {
    RedisURI place = RedisURI.create("127.0.0.1", at("a").getPort());
    RedisClient client = RedisClient.create(LettuceResources.SHARED);
    try (StatefulRedisConnection<String, String> open = client.connect(place)) {
      StatefulRedisConnection<String, String> reader = AntipodeLettuce.wrap(open, StoreOptions.named(STORE));
      leads(reader, place, "a", "b2");
      waitsAtTheReplica();
      assertThat(reader.sync().get("k")).isEqualTo("v");
    } finally {
      client.shutdown();
    }
  }

  /** It is judged as long as the connection leads there, whatever its URI says; then results are complete without it. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void lettuceWhoseConnectionWasThere_BAR_62(boolean isClosed) {
    Discovery.hurry(0, TimeUnit.SECONDS.toNanos(30));
    RedisURI place = RedisURI.create("127.0.0.1", at("a").getPort());
    RedisClient client = RedisClient.create(LettuceResources.SHARED);
    try (StatefulRedisConnection<String, String> open = client.connect(place)) {
      StatefulRedisConnection<String, String> reader = AntipodeLettuce.wrap(open, StoreOptions.named(STORE));
      leads(reader, place, "a", "b2");
      place.setPort(at("a").getPort());
      for (int turn = 0; turn < 3; turn++) {
        waitsAtTheReplica();
      }
      if (isClosed) {
        open.close();
      } else {
        leads(reader, place, "b2", "a");
      }
      isCompleteWithout("b2");
    } finally {
      client.shutdown();
      Discovery.hurry(TimeUnit.SECONDS.toNanos(5), TimeUnit.SECONDS.toNanos(30));
    }
  }

  /** Lettuce looks at its URI again when its server ends the connection. */
  private static void leads(
      StatefulRedisConnection<String, String> reader, RedisURI place, String from, String to) {
    long id = reader.sync().clientId();
    place.setPort(at(to).getPort());
    try (UnifiedJedis operator = redis.clients.jedis.RedisClient.create(at(from))) {
      operator.executeCommand(new CommandArguments(Protocol.Command.CLIENT).add("KILL").add("ID").add(id));
    }
    String role = to.equals("a") ? "master" : "slave";
    RedisServers.until(() -> reader.sync().role().get(0).equals(role), "it leads to " + to);
  }
}
