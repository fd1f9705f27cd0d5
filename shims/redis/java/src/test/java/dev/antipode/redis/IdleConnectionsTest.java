package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.StoreOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import java.time.Duration;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.DefaultJedisSocketFactory;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.providers.PooledConnectionProvider;
import redis.clients.jedis.util.Pool;

/** Connections that a client holds, and that lead elsewhere than its words: they are judged before their first use (BAR-68). */
class IdleConnectionsTest extends WithServers {
  private final DefaultJedisSocketFactory sockets =
      new DefaultJedisSocketFactory(at("a"), DefaultJedisClientConfig.builder().build());
  private final PooledConnectionProvider provider = new PooledConnectionProvider(
      new ConnectionFactory(sockets, DefaultJedisClientConfig.builder().build()), new GenericObjectPoolConfig<Connection>());
  private final UnifiedJedis client =
      redis.clients.jedis.RedisClient.builder().connectionProvider(provider).build();

  private static HostAndPort at(String server) {
    return new HostAndPort("127.0.0.1", servers.servers().get(server).port());
  }

  @AfterEach
  void close() {
    client.close();
  }

  private UnifiedJedis ownWrapped() {
    return AntipodeRedis.wrap(client, StoreOptions.named(STORE));
  }

  /** No barrier passes while the replica lacks a write, for the client's next connection leads there. */
  private void assertJudged() {
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
      BarrierResult late = Antipode.barrier(options.timeout(Duration.ofMillis(400)));
      assertThat(late.satisfied()).as("the next read shows " + client.get("k") + late.explain()).isFalse();
    } finally {
      servers.lab().heal("redis", "b2");
    }
    BarrierResult passed = Antipode.barrier(options.timeout(Duration.ofSeconds(60)));
    assertThat(passed.satisfied()).as(passed.explain()).isTrue();
    assertThat(passed.store(STORE).servers())
        .anyMatch(each -> each.address().contains(":" + at("b2").getPort()));
  }

  /** It holds one connection, which leads to the replica, and opens others at the primary. */
  private void warmAtTheReplica() {
    sockets.updateHostAndPort(at("b2"));
    provider.getPool().clear();
    assertThat(client.get("other")).isNull();
    sockets.updateHostAndPort(at("a"));
  }

  @Test
  void aPoolThatWasWarmedBeforeTheWrap_BAR_68() {
    warmAtTheReplica();
    UnifiedJedis reader = ownWrapped();
    assertJudged();
    assertThat(reader.get("k")).isEqualTo("v");
  }

  @Test
  void aPoolThatWasLedElsewhereAndBack_BAR_68() {
    UnifiedJedis reader = ownWrapped();
    warmAtTheReplica();
    assertJudged();
    assertThat(reader.get("k")).isEqualTo("v");
  }

  /** It comes back. */
  @Test
  void aConnectionThatIsTakenOutOfThePlainPool_BAR_68() {
    Pool<Connection> pool = provider.getPool();
    UnifiedJedis reader = ownWrapped();
    warmAtTheReplica();
    try (Connection taken = pool.getResource()) {
      assertJudged();
      assertThat(taken.isConnected()).isTrue();
    }
    assertThat(reader.get("k")).isEqualTo("v");
  }

  /** Its connection is open when it is wrapped, and its URI names another server by then. */
  @Test
  void lettuceWhoseConnectionWasOpenBefore_BAR_68() {
    RedisURI place = RedisURI.create("127.0.0.1", at("b2").getPort());
    RedisClient lettuce = RedisClient.create(LettuceResources.SHARED);
    try (StatefulRedisConnection<String, String> open = lettuce.connect(place)) {
      place.setPort(at("a").getPort());
      StatefulRedisConnection<String, String> reader = AntipodeLettuce.wrap(open, StoreOptions.named(STORE));
      assertJudged();
      assertThat(reader.sync().get("k")).isEqualTo("v");
    } finally {
      lettuce.shutdown();
    }
  }
}
