package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Reading;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;

/** Barriers, reads that wait, reading blocks and lineages at rest (SHIM-12 to SHIM-15, SHIM-19; BAR-50). */
class ReadsTest extends WithServers {
  private static final String SERVER = "b2";

  private UnifiedJedis reader(StoreOptions options) {
    return AntipodeRedis.wrap(servers.client(SERVER), options);
  }

  private static Lineage written(UnifiedJedis posts, String key, String value) {
    try (LineageScope scope = Antipode.scope()) {
      posts.set(key, value);
      return scope.lineage();
    }
  }

  @Test
  void aBarrierWaitsForTheReplicas_SHIM_15() {
    UnifiedJedis posts = wrapped();
    for (int number = 0; number < 20; number++) {
      Lineage lineage = written(posts, "k", "v" + number);
      BarrierResult result = Antipode.barrier(BarrierOptions.defaults().lineage(lineage));
      assertThat(result.satisfied()).isTrue();
      assertThat(servers.client(SERVER).get("k")).isEqualTo("v" + number);
    }
  }

  @Test
  void aBarrierDoesNotPassBeforeTheReplica() {
    UnifiedJedis posts = wrapped();
    servers.lab().partition("redis", SERVER);
    Lineage lineage = written(posts, "k", "v");
    BarrierOptions options = BarrierOptions.defaults().lineage(lineage).onTimeout(Policy.PROCEED);
    try {
      BarrierResult result = Antipode.barrier(options.timeout(Duration.ofMillis(300)));
      assertThat(result.store(STORE).verdict()).isEqualTo(Verdict.TIMED_OUT);
    } finally {
      servers.lab().heal("redis", SERVER);
    }
    assertThat(Antipode.barrier(options.timeout(Duration.ofSeconds(20))).satisfied()).isTrue();
  }

  @Test
  void ourOwnConnectionTracks_theApplicationsNever_SHIM_5() {
    UnifiedJedis posts = wrapped();
    servers.lab().lag("redis", SERVER, Duration.ofMillis(300));
    try {
      Lineage lineage = written(posts, "k", "v");
      CompletableFuture<BarrierResult> waiting =
          Antipode.barrierAsync(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(20)));
      RedisServers.until(() -> tracking(SERVER) == 1, "one connection tracks");
      assertThat(waiting.join().satisfied()).isTrue();
      assertThat(tracking("a")).isZero();
    } finally {
      servers.lab().lag("redis", SERVER, Duration.ofMillis(20));
    }
  }

  private long tracking(String server) {
    Object list = servers.client(server).executeCommand(
        new CommandArguments(Protocol.Command.CLIENT).add("LIST"));
    String text = Replication.text((byte[]) list);
    return text.lines().filter(line -> line.matches(".* flags=[a-zA-Z]*t.*")).count();
  }

  @Test
  void aProcessThatOnlyWaitsRegisters() {
    Lineage lineage = written(AntipodeRedis.wrap(plain, StoreOptions.named("elsewhere")), "k", "v");
    WriteId id = lineage.ids().get(0);
    AntipodeRedis.register(StoreOptions.named(STORE).replicas(servers.url("b1")));
    Ordered position = (Ordered) id.version();
    Lineage here = Lineage.of(WriteId.position(STORE, position.epoch(), position.counter()));
    BarrierResult result = Antipode.barrier(BarrierOptions.defaults().lineage(here).stores(STORE));
    assertThat(result.store(STORE).verdict()).isEqualTo(Verdict.VISIBLE);
  }

  @Test
  void eachReadWaitsFirst_BAR_50() {
    UnifiedJedis posts = wrapped();
    UnifiedJedis there = reader(options().waitOnRead(true));
    for (int number = 0; number < 10; number++) {
      try (LineageScope scope = Antipode.scope()) {
        posts.set("k", "v" + number);
        assertThat(there.get("k")).isEqualTo("v" + number);
        posts.set("k2", "v" + number);
        try (AbstractPipeline pipeline = there.pipelined()) {
          Response<String> value = pipeline.get("k2");
          pipeline.sync();
          assertThat(value.get()).isEqualTo("v" + number);
        }
        posts.set("k3", "v" + number);
        try (AbstractTransaction transaction = there.transaction(false)) {
          transaction.watch("k3");
          assertThat(transaction.get("k3").get()).isEqualTo("v" + number);
        }
        posts.set("k4", "v" + number);
        try (AbstractTransaction transaction = there.multi()) {
          transaction.get("k4");
          assertThat(transaction.exec()).containsExactly("v" + number);
        }
      }
    }
  }

  @Test
  void aReadThatWaitedInVainThrows_BAR_50() {
    UnifiedJedis posts = wrapped();
    UnifiedJedis there = reader(options().waitOnRead(true).timeout(Duration.ofMillis(200)));
    servers.lab().partition("redis", SERVER);
    try (LineageScope scope = Antipode.scope()) {
      posts.set("k", "v");
      assertThatThrownBy(() -> there.get("k"))
          .isInstanceOf(BarrierException.class)
          .hasMessageContaining("(wait on read)");
    } finally {
      servers.lab().heal("redis", SERVER);
    }
  }

  @Test
  void readingCoversWhatWasRead_SHIM_13() {
    UnifiedJedis posts = wrapped();
    Lineage lineage = written(posts, "k", "v");
    try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
      assertThat(posts.get("k")).isEqualTo("v");
      assertThat(lineage.isCoveredBy(seen.lineage())).isTrue();
      assertThat(scope.lineage().isEmpty()).isTrue(); // SHIM-12
    }
    try (Reading seen = Antipode.reading(); AbstractPipeline pipeline = posts.pipelined()) {
      Response<String> value = pipeline.get("k");
      pipeline.sync();
      assertThat(value.get()).isEqualTo("v");
      assertThat(lineage.isCoveredBy(seen.lineage())).isTrue();
    }
    try (Reading seen = Antipode.reading()) {
      assertThatThrownBy(() -> posts.llen("k")).hasMessageContaining("WRONGTYPE"); // the error stays Jedis' own
      assertThat(posts.get("k")).isEqualTo("v");
      assertThat(seen.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void readingAfterALineageWaits() {
    UnifiedJedis posts = wrapped();
    UnifiedJedis there = reader(options());
    for (int number = 0; number < 10; number++) {
      Lineage lineage = written(posts, "k", "v" + number);
      try (Reading seen = Antipode.reading(lineage)) {
        assertThat(there.get("k")).isEqualTo("v" + number);
      }
    }
  }

  @Test
  void withAutomaticMergingReadsJoinTheScope() {
    UnifiedJedis posts = wrapped();
    Lineage lineage = written(posts, "k", "v");
    Antipode.configure(Antipode.settings().autoMerge(true));
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.get("k")).isEqualTo("v");
      assertThat(lineage.isCoveredBy(scope.lineage())).isTrue();
    }
    try (LineageScope scope = Antipode.scope(); AbstractTransaction transaction = posts.multi()) {
      transaction.get("k");
      assertThat(transaction.exec()).containsExactly("v");
      assertThat(lineage.isCoveredBy(scope.lineage())).isTrue();
    }
  }

  // Rest mode field

  private static final WriteId OTHER = WriteId.position("other", "e1", 7);

  @Test
  void aLineageRestsInAFieldOfItsHash_SHIM_9() {
    UnifiedJedis posts = AntipodeRedis.wrap(plain, options().rest(Capabilities.Rest.FIELD));
    try (LineageScope scope = Antipode.scope(Lineage.of(OTHER))) {
      assertThat(posts.hset("h", Map.of("a", "1", "b", "2"))).isEqualTo(2);
      assertThat(plain.hget("h", "antipode")).isEqualTo("1~other..e1.7");
      assertThat(posts.hincrBy("h", "n", 3)).isEqualTo(3);
      assertThat(plain.hget("h", "antipode")).startsWith("1~other..e1.7~posts..");
    }
    assertThat(posts.hgetAll("h")).containsOnlyKeys("a", "b", "n");
    assertThat(posts.hkeys("h")).containsExactlyInAnyOrder("a", "b", "n");
    assertThat(posts.hvals("h")).containsExactlyInAnyOrder("1", "2", "3");
    assertThat(posts.hlen("h")).isEqualTo(3);
    assertThat(posts.hscan("h", "0").getResult()).hasSize(3);
    try (Reading seen = Antipode.reading()) {
      assertThat(posts.hget("h", "a")).isEqualTo("1");
      assertThat(seen.lineage().covers(OTHER)).isTrue();
    }
    try (Reading seen = Antipode.reading(); AbstractPipeline pipeline = posts.pipelined()) {
      Response<Map<String, String>> all = pipeline.hgetAll("h");
      pipeline.sync();
      assertThat(all.get()).containsOnlyKeys("a", "b", "n");
      assertThat(seen.lineage().covers(OTHER)).isTrue();
      assertThat(seen.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void aHashIsWrittenByManyScopes_andBeginsAnewWhenDeleted() {
    UnifiedJedis posts = AntipodeRedis.wrap(plain, options().rest(Capabilities.Rest.FIELD));
    for (int number = 1; number <= 2; number++) {
      try (LineageScope scope = Antipode.scope(Lineage.of(WriteId.position("other" + number, "e1", 7)))) {
        posts.hset("h", "f" + number, "v");
      }
    }
    assertThat(plain.hget("h", "antipode")).isEqualTo("1~other1..e1.7~other2..e1.7");
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.hdel("h", "f1", "f2")).isEqualTo(2);
    }
    assertThat(plain.exists("h")).isFalse();
  }

  @Test
  void whatWasWrittenWithoutAntipodeReadsAsEmpty_brokenAsIncomplete_SHIM_14() {
    UnifiedJedis posts = AntipodeRedis.wrap(plain, options().rest(Capabilities.Rest.FIELD));
    plain.hset("h", "a", "1");
    try (Reading seen = Antipode.reading()) {
      assertThat(posts.hget("h", "a")).isEqualTo("1");
      assertThat(seen.lineage().isComplete()).isTrue();
    }
    plain.hset("h", "antipode", "nonsense");
    try (Reading seen = Antipode.reading()) {
      assertThat(posts.hget("h", "a")).isEqualTo("1");
      assertThat(seen.lineage().isComplete()).isFalse();
    }
  }

  @Test
  void transactionsKeepLineagesToo() {
    UnifiedJedis posts = AntipodeRedis.wrap(plain, options().rest(Capabilities.Rest.FIELD));
    try (LineageScope scope = Antipode.scope(Lineage.of(OTHER)); AbstractTransaction transaction = posts.multi()) {
      transaction.hset("h", "a", "1");
      Response<Map<String, String>> all = transaction.hgetAll("h");
      assertThat(transaction.exec()).hasSize(2);
      assertThat(all.get()).containsOnlyKeys("a");
    }
    assertThat(plain.hget("h", "antipode")).isEqualTo("1~other..e1.7");
  }
}
