package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.ServerResult;
import dev.antipode.StoreOptions;
import dev.antipode.StoreResult;
import dev.antipode.Verdict;
import dev.antipode.lab.Lab;
import dev.antipode.testing.AntipodeIsolated;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisSentinelClient;
import redis.clients.jedis.UnifiedJedis;

/** Clients of Sentinels: their servers are those that the Sentinels name, now and again (BAR-52 to BAR-54). */
@ExtendWith(AntipodeIsolated.class)
@Timeout(value = 4, unit = TimeUnit.MINUTES) // a failover may take 90 s
@TestMethodOrder(MethodOrderer.OrderAnnotation.class) // the failover comes last
class SentinelsTest {
  private static final String SERVICE = "antipode";

  private static Lab lab;
  private static final Set<HostAndPort> PLACES = new HashSet<>();

  @BeforeAll
  static void up() {
    lab = Lab.of("redis").replicas(1).lag("5ms").sentinels().up();
    for (JsonNode each : lab.details("redis").path("sentinels")) {
      PLACES.add(new HostAndPort(each.path("host").asText(), each.path("port").asInt()));
    }
  }

  @AfterAll
  static void down() {
    lab.close();
  }

  private static RedisSentinelClient jedis() {
    return RedisSentinelClient.builder().masterName(SERVICE).sentinels(PLACES).build();
  }

  private static RedisURI place() {
    RedisURI.Builder builder = RedisURI.builder().withSentinelMasterId(SERVICE);
    PLACES.forEach(each -> builder.withSentinel(each.getHost(), each.getPort()));
    return builder.build();
  }

  private static String replica() {
    return lab.servers("redis").values().stream()
        .filter(server -> server.role().equals("replica")).findFirst().orElseThrow().url();
  }

  private static StoreResult judge(String store, Lineage lineage) {
    return Antipode.barrier(BarrierOptions.defaults()
            .lineage(lineage)
            .stores(store)
            .timeout(Duration.ofSeconds(20))
            .onTimeout(Policy.PROCEED)
            .onUnproven(Policy.PROCEED))
        .store(store);
  }

  private static List<String> judged(StoreResult result) {
    return result.servers().stream().filter(server -> !server.leftOut()).map(ServerResult::address).sorted().toList();
  }

  private static Lineage written(Runnable write) {
    try (LineageScope scope = Antipode.scope()) {
      write.run();
      return scope.lineage();
    }
  }

  private static void until(BooleanSupplier condition) {
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime() - deadline).isNegative();
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
    }
  }

  /** A wrapped client of the service: judged is a server, and no role. */
  private record Client(String store, Supplier<Lineage> writing) {
    String primary() {
      StoreResult result = judge(store, writing.get());
      assertThat(result.verdict()).isEqualTo(Verdict.VISIBLE);
      assertThat(judged(result)).singleElement().asString().startsWith("redis://127.0.0.1:");
      return judged(result).get(0);
    }
  }

  @Test
  @Order(2)
  void aClientsOwnPrimaryIsNamedByTheSentinels_BAR_54() {
    RedisClient client = RedisClient.create(LettuceResources.SHARED, place());
    try (RedisSentinelClient plain = jedis()) {
      UnifiedJedis jedis = AntipodeRedis.wrap(plain, "by-jedis");
      StatefulRedisConnection<String, String> lettuce = AntipodeLettuce.wrap(client.connect(), "by-lettuce");
      List<Client> clients = List.of(
          new Client("by-jedis", () -> written(() -> jedis.set("k", "v"))),
          new Client("by-lettuce", () -> written(() -> lettuce.sync().set("k", "v"))));
      List<String> old = clients.stream().map(Client::primary).toList();
      lab.verb("redis", "failover");
      for (int each = 0; each < 2; each++) {
        String store = clients.get(each).store();
        String gone = old.get(each);
        Lineage lineage = clients.get(each).writing().get();
        until(() -> judge(store, lineage).leftOut().contains(gone));
        assertThat(judged(judge(store, lineage))).hasSize(1).doesNotContain(gone);
        assertThat(Antipode.barrier(BarrierOptions.defaults()
                .lineage(lineage).stores(store).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED))
            .complete()).isFalse();
      }
    } finally {
      client.shutdown(0, 2, TimeUnit.SECONDS);
    }
  }

  /** The wrap names the region's servers, so that its own one is none of them (BAR-22); connections are wrapped one by one. */
  @Test
  @Order(1)
  void withAListThePrimaryIsWrittenToAlone_BAR_22() {
    RedisClient client = RedisClient.create(LettuceResources.SHARED, place());
    try (RedisSentinelClient plain = jedis()) {
      StoreOptions options = StoreOptions.named("posts").replicas(replica());
      UnifiedJedis posts = AntipodeRedis.wrap(plain, options);
      assertThat(judged(judge("posts", written(() -> posts.set("k", "v"))))).containsExactly(replica());
      LettuceWrapping wrapping = AntipodeLettuce.wrapping(StoreOptions.named("alone"));
      StatefulRedisConnection<String, String> alone = wrapping.wrap(client.connect());
      StoreResult result = judge("alone", written(() -> alone.sync().set("k", "v")));
      assertThat(result.verdict()).isEqualTo(Verdict.VISIBLE);
      assertThat(judged(result)).singleElement().asString().startsWith("redis://127.0.0.1:");
    } finally {
      client.shutdown(0, 2, TimeUnit.SECONDS);
    }
  }
}
