package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.PendingWrite;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.Builder;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** What is Jedis' own: its types, its transactions, its retries. */
class JedisTest extends WithServers {
  @Test
  void typedRepliesStayJedisOwn_SHIM_2() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.hset("h", Map.of("a", "1"))).isEqualTo(1);
      assertThat(posts.hgetAll("h")).containsExactly(Map.entry("a", "1"));
      assertThat(posts.lpush("l", "x", "y")).isEqualTo(2);
      assertThat(posts.lrange("l", 0, -1)).containsExactly("y", "x");
      assertThat(posts.expire("h", 100)).isEqualTo(1);
      assertThat(posts.zadd("z", 1.5, "m")).isEqualTo(1);
      assertThat(posts.zscore("z", "m")).isEqualTo(1.5);
      assertThat(posts.incrByFloat("f", 0.5)).isEqualTo(0.5);
      assertThat(posts.eval("return redis.call('SET', KEYS[1], 'v')", 1, "s")).isEqualTo("OK");
      assertThat(posts.blpop(1, "l")).containsExactly("l", "y");
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      assertThat(posts.exists("s")).isTrue();
      try (AbstractTransaction transaction = posts.multi()) {
        Response<String> set = transaction.set("k", "v");
        Response<Map<String, String>> all = transaction.hgetAll("h");
        assertThat(transaction.exec()).hasSize(2);
        assertThat(set.get()).isEqualTo("OK");
        assertThat(all.get()).containsOnlyKeys("a");
      }
    }
  }

  @Test
  void aTransactionWithoutExecDidNotHappen_SCOPE_17() {
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
        RedisClient behind = RedisClient.create("127.0.0.1", proxy.port())) {
      UnifiedJedis posts = AntipodeRedis.wrap(behind, options());
      posts.set("k", "v");
      try (LineageScope scope = Antipode.scope(); AbstractTransaction transaction = posts.multi()) {
        transaction.set("k", "w");
        proxy.cutAfter("+OK\r\n+QUEUED");
        assertThatThrownBy(transaction::exec).isInstanceOf(JedisConnectionException.class);
        assertThat(scope.pending()).isEmpty();
      }
    }
    assertThat(plain.get("k")).isEqualTo("v");
  }

  @Test
  void aTransactionThatIsNotExecutedFailsWithItsConnection_SHIM_2() {
    for (UnifiedJedis each : List.of(servers.client("a"), wrapped())) {
      try (LineageScope scope = Antipode.scope(); AbstractTransaction transaction = each.multi()) {
        transaction.set("k", "w");
        assertThat(transaction.discard()).isEqualTo("OK");
        transaction.multi();
        transaction.set("k", "w");
        plain.executeCommand(new CommandArguments(Protocol.Command.CLIENT).add("KILL").add("TYPE").add("normal"));
        assertThatThrownBy(transaction::discard).isInstanceOf(JedisConnectionException.class);
        assertThat(scope.pending()).isEmpty();
      }
    }
  }

  /** Who knows whether it was refused. */
  @Test
  void aTransactionWhoseMultiWasNotAnsweredIsUnknown_SCOPE_17() {
    UnifiedJedis posts = AntipodeRedis.wrap(servers.hasty("a", Duration.ofSeconds(1)), options());
    posts.set("k", "v");
    try (LineageScope scope = Antipode.scope(); AbstractTransaction transaction = posts.multi()) {
      transaction.set("k", "w");
      servers.lab().freeze("redis", "a");
      try {
        assertThatThrownBy(transaction::exec).isInstanceOf(JedisConnectionException.class);
      } finally {
        servers.lab().thaw("redis", "a");
      }
      assertThat(scope.pending()).hasSize(1).allMatch(PendingWrite::isUnknown);
    }
  }

  /** As Jedis has it, what was queued is sent with MULTI, and executed by itself. */
  @ParameterizedTest
  @ValueSource(strings = {"multi", "@transaction"})
  void whatARefusedMultiDidNotQueueIsUnknown_SCOPE_17(String right) {
    plain.set("k", "v");
    servers.lab().verb("redis", "create_user", "poor", "secret", "~*", "&*", "+@all", "-" + right);
    UnifiedJedis posts = AntipodeRedis.wrap(
        servers.client("a", DefaultJedisClientConfig.builder().user("poor").password("secret")), options());
    try (LineageScope scope = Antipode.scope(); AbstractTransaction transaction = posts.multi()) {
      transaction.set("k", "w");
      Response<String> read = transaction.get("k");
      assertThatThrownBy(transaction::exec).isInstanceOf(JedisDataException.class);
      assertThat(plain.get("k")).isEqualTo("w");
      assertThatThrownBy(read::get).as("Jedis gives no value").isInstanceOf(IllegalStateException.class);
      assertThat(scope.pending()).hasSize(1).allMatch(PendingWrite::isUnknown);
      assertThat(scope.outgoing().isComplete()).isFalse();
    }
  }

  /** A command that blocks, as it is not queued: its reply does not come in time, and that to MULTI has come. */
  @Test
  void aRefusedMultiWhoseConnectionBreaksBehindItIsUnknown_SCOPE_17() {
    plain.set("k", "v");
    servers.lab().verb("redis", "create_user", "poor", "secret", "~*", "&*", "+@all", "-multi");
    UnifiedJedis posts = AntipodeRedis.wrap(
        servers.client("a", DefaultJedisClientConfig.builder().user("poor").password("secret")
            .socketTimeoutMillis(500)),
        options());
    try (LineageScope scope = Antipode.scope(); AbstractTransaction transaction = posts.multi()) {
      transaction.set("k", "w");
      transaction.blpop(60, "none");
      assertThatThrownBy(transaction::exec).isInstanceOf(JedisConnectionException.class);
      assertThat(plain.get("k")).isEqualTo("w");
      assertThat(scope.pending()).hasSize(1).allMatch(PendingWrite::isUnknown);
      assertThat(scope.outgoing().isComplete()).isFalse();
    }
  }

  private static CommandObject<String> withABrokenBuilder() {
    return new CommandObject<>(new CommandArguments(Protocol.Command.SET).add("k").add("v"), new Builder<>() {
      @Override
      public String build(Object reply) {
        throw new IllegalStateException("cannot be built");
      }
    });
  }

  @Test
  void aReplyThatCannotBeBuiltLeavesNoWritePending_SCOPE_14() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope(); AbstractTransaction transaction = posts.multi()) {
      transaction.executeCommand(withABrokenBuilder());
      assertThatThrownBy(transaction::exec).hasMessage("cannot be built");
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1); // it was committed
    }
    try (LineageScope scope = Antipode.scope(); RecordingPipeline pipeline = (RecordingPipeline) posts.pipelined()) {
      pipeline.executeCommand(withABrokenBuilder());
      assertThatThrownBy(pipeline::syncAndReturnAll).hasMessage("cannot be built");
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      assertThat(pipeline.get("k")).satisfies(response -> {
        pipeline.sync();
        assertThat(response.get()).isEqualTo("v"); // each reply still belongs to its command
      });
    }
  }

  @Test
  void aRefusedWrapChangesNothing_SHIM_37() {
    StoreOptions posts = options().rest(Rest.ENVELOPE).envelopeKeys("post:*");
    AntipodeRedis.wrap(plain, posts);
    StoreOptions before = Registry.current().get(STORE).options();
    assertThatThrownBy(() -> AntipodeRedis.wrap(plain, posts.envelopeKeys("user:*").timeout(Duration.ofSeconds(7))))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("envelopeKeys");
    assertThat(Registry.current().get(STORE).options()).isEqualTo(before);
  }

  @Test
  void optionsThatCannotBeAreRefused() {
    assertThatThrownBy(() -> AntipodeRedis.wrap(plain, StoreOptions.named("x").replicas("http://u:secret@b1")))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageNotContaining("secret");
  }

  @Test
  void aServerThatIsDownIsNoErrorOfWrap() {
    UnifiedJedis posts = AntipodeRedis.wrap(
        RedisClient.create("127.0.0.1", 1), StoreOptions.named("down"));
    assertThat(logs.text()).contains("does not answer yet");
    assertThatThrownBy(() -> posts.set("k", "v")).isInstanceOf(JedisConnectionException.class);
    posts.close();
  }

  /** A read that waits at the end makes none of one that was sent before. */
  @Test
  void whatWasSentBeforeItHadToShowAnythingIsToldThoughALaterReadWaited_BAR_51() {
    UnifiedJedis posts = wrapped();
    UnifiedJedis there = AntipodeRedis.wrap(servers.client("b2"), options());
    Lineage written;
    try (AbstractPipeline pipeline = there.pipelined()) {
      Response<String> early = pipeline.get("k");
      try (LineageScope scope = Antipode.scope()) {
        posts.set("k", "v");
        written = scope.lineage();
      }
      try (Reading seen = Antipode.reading(written)) {
        pipeline.get("k");
        assertThatThrownBy(pipeline::sync).hasStackTraceContaining("AP514").hasMessageContaining("read anew");
        assertThat(seen.after()).contains(written);
        assertThat(early).isNotNull();
      }
    }
  }

  @Test
  void anIterationWaitsFirst_SHIM_44() {
    UnifiedJedis posts = wrapped();
    UnifiedJedis there = AntipodeRedis.wrap(servers.client("b2"), options().waitOnRead(true));
    for (int number = 0; number < 5; number++) {
      String key = "iterated" + number;
      try (LineageScope scope = Antipode.scope()) {
        posts.set(key, "v");
        assertThat(there.scanIteration(100, "iter*").collect(new ArrayList<>())).contains(key);
        posts.set(key + "!", "v");
        assertThat(there.scanIteration(100, "iter*", "string").collect(new ArrayList<>())).contains(key + "!");
      }
    }
    assertThat(plain.scanIteration(1, "iter*").collect(new ArrayList<>())).hasSize(10);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whoExecutesWhatIsNotAnsweredIsInDoubt_SCOPE_24(boolean isTransaction) {
    UnifiedJedis posts = AntipodeRedis.wrap(servers.hasty("a", Duration.ofSeconds(1)), options());
    posts.set("k", "v");
    try (AbstractPipeline pipeline = posts.pipelined(); AbstractTransaction transaction = posts.multi()) {
      try (LineageScope queueing = Antipode.scope()) {
        if (isTransaction) {
          transaction.set("k", "w");
        } else {
          pipeline.set("k", "w");
        }
      }
      try (LineageScope executing = Antipode.scope()) {
        servers.lab().freeze("redis", "a");
        try {
          assertThatThrownBy(() -> {
            if (isTransaction) {
              transaction.exec();
            } else {
              pipeline.sync();
            }
          }).isInstanceOf(JedisConnectionException.class);
        } finally {
          servers.lab().thaw("redis", "a");
        }
        assertThat(executing.pending()).singleElement().matches(PendingWrite::isUnknown);
        assertThat(executing.outgoing().isComplete()).isFalse();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whoExecutesWhatAnotherScopeReadDependsOnIt_SCOPE_24(boolean isTransaction) {
    WriteId other = WriteId.position("other", "e1", 7);
    UnifiedJedis posts = AntipodeRedis.wrap(servers.client("a"), options().rest(Rest.FIELD));
    try (LineageScope scope = Antipode.scope(Lineage.of(other))) {
      posts.hset("h", Map.of("a", "1"));
    }
    try (AbstractPipeline pipeline = posts.pipelined(); AbstractTransaction transaction = posts.multi()) {
      Response<Map<String, String>> all;
      try (LineageScope queueing = Antipode.scope()) {
        all = isTransaction ? transaction.hgetAll("h") : pipeline.hgetAll("h");
      }
      try (LineageScope executing = Antipode.scope(); Reading seen = Antipode.reading()) {
        if (isTransaction) {
          transaction.exec();
        } else {
          pipeline.sync();
        }
        assertThat(all.get()).containsOnlyKeys("a");
        assertThat(seen.lineage().ofStore(STORE)).hasSize(1);
        assertThat(seen.lineage().covers(other)).isTrue();
      }
    }
  }
}
