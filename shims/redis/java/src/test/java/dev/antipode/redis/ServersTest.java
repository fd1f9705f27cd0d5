package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.internal.store.Registry;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.UnifiedJedis;

/** Servers and clients of other kinds: without replicas, in the old protocol, without tracking. */
@ExtendWith(AntipodeIsolated.class)
class ServersTest {
  private static final String STORE = "posts";

  @Test
  void withoutAReplicaWritesAreIncomplete_EPOCH_5() {
    try (LoneServer server = new LoneServer();
        RedisClient plain = RedisClient.create("127.0.0.1", server.port());
        CapturedLogs logs = new CapturedLogs();
        LineageScope scope = Antipode.scope()) {
      UnifiedJedis posts = AntipodeRedis.wrap(plain, STORE);
      assertThat(posts.set("k", "v")).isEqualTo("OK");
      assertThat(scope.lineage().incomplete()).containsExactly(STORE);
      assertThat(scope.lineage().ofStore(STORE)).isEmpty();
      assertThat(logs.text()).contains("has no replica and no backlog yet. Attach a replica.");
    }
  }

  @Test
  void onUnfitUnprovenAClusterStarts_SHIM_3() {
    try (LoneServer server = new LoneServer("--cluster-enabled", "yes");
        RedisClient plain = RedisClient.create("127.0.0.1", server.port())) {
      UnifiedJedis posts =
          AntipodeRedis.wrap(plain, StoreOptions.named(STORE).onUnfit(StoreOptions.OnUnfit.UNPROVEN));
      assertThat(posts.ping()).isEqualTo("PONG");
    }
  }

  @Test
  void bothProtocolsAndUsersWithoutTracking_SHIM_19() {
    try (RedisServers servers = new RedisServers("5ms")) {
      for (RedisProtocol protocol : RedisProtocol.values()) {
        RedisClient plain = servers.client("a", DefaultJedisClientConfig.builder().protocol(protocol));
        UnifiedJedis posts = AntipodeRedis.wrap(
            plain,
            StoreOptions.named(STORE).replicas(servers.url("b1")).rest(Rest.FIELD));
        try (LineageScope scope = Antipode.scope(Lineage.deserialize("1~other..e1.7"))) {
          posts.del("h");
          posts.hset("h", Map.of("a", "1"));
          assertThat(posts.hgetAll("h")).as(protocol.name()).containsExactly(Map.entry("a", "1"));
          assertThat(posts.hvals("h")).containsExactly("1");
          assertThat(posts.hlen("h")).isEqualTo(1);
          assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
          assertThat(verdict(scope.lineage())).isEqualTo(Verdict.VISIBLE);
        }
      }
      servers.lab().verb("redis", "create_user", "poor", "secret", "~*", "&*", "+@all", "-client|tracking");
      try (LineageScope scope = Antipode.scope(); CapturedLogs logs = new CapturedLogs()) {
        StoreOptions polled = StoreOptions.named("polled")
            .replicas(servers.url("b1").replace("redis://", "redis://poor:secret@"));
        UnifiedJedis posts = AntipodeRedis.wrap(servers.client("a"), polled);
        posts.set("k", "v");
        assertThat(Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(20)).stores("polled"))
                .satisfied())
            .isTrue();
        assertThat(logs.text()).contains("cannot push, so it is polled").doesNotContain("secret");
      }
    }
  }

  @Test
  void withoutTheRightToMarkPositionsAreGivenAndThatIsSaid_EPOCH_26() {
    try (RedisServers servers = new RedisServers("5ms");
        CapturedLogs logs = new CapturedLogs();
        LineageScope scope = Antipode.scope()) {
      servers.lab().verb("redis", "create_user", "poor", "secret", "~*", "&*", "+@all", "-eval", "-evalsha");
      UnifiedJedis posts = AntipodeRedis.wrap(
          servers.client("a", DefaultJedisClientConfig.builder().user("poor").password("secret")),
          StoreOptions.named(STORE).replicas(servers.url("b1")));
      posts.set("k", "v");
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(verdict(scope.lineage())).isEqualTo(Verdict.VISIBLE);
      RedisServers.until(() -> logs.text().contains("cannot be marked at"), "the missing right is said");
      assertThat(logs.text()).contains("Grant it: ACL SETUSER <user> +info").doesNotContain("secret");
    }
  }

  @Test
  void aStoreThatIsForgottenHasNoThreads() {
    try (RedisServers servers = new RedisServers("5ms"); LineageScope scope = Antipode.scope()) {
      UnifiedJedis posts = AntipodeRedis.wrap(
          servers.client("a"), StoreOptions.named("forgotten").replicas(servers.url("b1")));
      posts.set("k", "v");
      Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(20)).stores("forgotten"));
      assertThat(threads("antipode-marks-forgotten")).isEqualTo(1);
      Registry.current().need("forgotten").forget();
      RedisServers.until(
          () -> threads("antipode-marks-forgotten") + threads("antipode-redis-") == 0, "the threads end");
    }
  }

  private static long threads(String name) {
    return Thread.getAllStackTraces().keySet().stream().filter(each -> each.getName().startsWith(name)).count();
  }

  private static Verdict verdict(Lineage lineage) {
    return Antipode.barrier(
            BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(20)).stores(STORE))
        .store(STORE)
        .verdict();
  }
}
