package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** What a wrapped client's writes leave in the scope (SHIM-1, SHIM-2, SHIM-6 to SHIM-8, SHIM-11; EPOCH-1 to EPOCH-5). */
class WritesTest extends WithServers {
  private static List<WriteId> ids(LineageScope scope) {
    return scope.lineage().ofStore(STORE);
  }

  private Ordered here() {
    return Replication.parse(plain.info("replication").getBytes(StandardCharsets.US_ASCII)).position();
  }

  @Test
  void aWriteGetsItsPositionInItsOwnPacket_SHIM_7() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      long before = calls("info");
      assertThat(posts.set("k", "v")).isEqualTo("OK");
      assertThat(ids(scope)).hasSize(1);
      Ordered version = (Ordered) ids(scope).get(0).version();
      assertThat(ids(scope).get(0).isPosition()).isTrue();
      assertThat(version.epoch()).isEqualTo(here().epoch());
      assertThat(version.compareCounter(here().counter())).isLessThanOrEqualTo(0);
      assertThat(scope.lineage().isComplete()).isTrue();
      // The question, our own two looks at it, and the marker's.
      assertThat(calls("info") - before).isGreaterThanOrEqualTo(3);
      assertThat(plain.get("k")).isEqualTo("v");
    }
  }

  @Test
  void thePlainClientStaysPlain_SHIM_1() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      plain.set("k", "v");
      assertThat(ids(scope)).isEmpty();
      assertThat(posts.get("k")).isEqualTo("v"); // and reads add nothing (SHIM-12)
      assertThat(ids(scope)).isEmpty();
    }
  }

  @Test
  void deletesExpiryScriptsAndTypedRepliesStayJedisOwn_SHIM_2() {
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
      assertThat(ids(scope)).hasSize(1);
      assertThat(posts.exists("s")).isTrue();
    }
  }

  @Test
  void aWriteThatChangedNothingIsCoveredToo_LIN_29() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.del("never")).isZero();
      assertThat(ids(scope)).hasSize(1);
    }
  }

  @Test
  void aRefusedWriteLeavesNothing_SCOPE_17() {
    UnifiedJedis posts = wrapped();
    plain.set("text", "v");
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> posts.lpush("text", "x"))
          .isInstanceOf(JedisDataException.class)
          .hasMessageContaining("WRONGTYPE");
      assertThat(ids(scope)).isEmpty();
      assertThat(scope.pending()).isEmpty();
      assertThat(posts.set("k", "v")).isEqualTo("OK"); // the connection is in step
    }
  }

  @Test
  void whatAScriptWroteBeforeItsErrorIsCovered() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      String script = "redis.call('SET', KEYS[1], 'v') return redis.error_reply('OOPS no')";
      assertThatThrownBy(() -> posts.eval(script, 1, "k")).isInstanceOf(JedisDataException.class);
      assertThat(ids(scope)).hasSize(1);
    }
  }

  @Test
  void aPipelineAsksOnce() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      long before = calls("info");
      Response<Long> counted;
      try (AbstractPipeline pipeline = posts.pipelined()) {
        for (int number = 0; number < 50; number++) {
          pipeline.set("k" + number, "v");
        }
        counted = pipeline.incr("n");
        assertThat(scope.pendingStores()).containsExactly(STORE);
        pipeline.sync();
        assertThat(scope.pending()).isEmpty();
      }
      assertThat(counted.get()).isEqualTo(1);
      assertThat(ids(scope)).hasSize(1);
      assertThat(calls("info") - before).isLessThan(15); // one for 51 writes; some of the marker and of ours
      assertThat(((Ordered) ids(scope).get(0).version()).compareCounter(here().counter())).isLessThanOrEqualTo(0);
    }
  }

  @Test
  void aPipelineWithErrorsIsCovered_oneOfErrorsAloneLeavesNothing() {
    UnifiedJedis posts = wrapped();
    plain.set("text", "v");
    try (LineageScope scope = Antipode.scope()) {
      try (RecordingPipeline pipeline = (RecordingPipeline) posts.pipelined()) {
        pipeline.lpush("text", "x");
        assertThat(pipeline.syncAndReturnAll().get(0)).isInstanceOf(JedisDataException.class);
        assertThat(ids(scope)).isEmpty();
        pipeline.lpush("text", "x");
        pipeline.set("k", "v");
        assertThat(pipeline.syncAndReturnAll()).hasSize(2).contains("OK");
        assertThat(ids(scope)).hasSize(1);
      }
    }
  }

  @Test
  void aTransactionHasItsPositionBehindExec_SHIM_11() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      try (AbstractTransaction transaction = posts.multi()) {
        Response<String> set = transaction.set("k", "v");
        transaction.incr("n");
        assertThat(scope.pendingStores()).containsExactly(STORE);
        assertThat(transaction.exec()).containsExactly("OK", 1L);
        assertThat(set.get()).isEqualTo("OK");
      }
      assertThat(scope.pending()).isEmpty();
      assertThat(ids(scope)).hasSize(1);
    }
  }

  @Test
  void anAbortedTransactionLeavesNothing_SHIM_11() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      try (AbstractTransaction transaction = posts.multi()) {
        transaction.set("k", "v");
        transaction.discard();
      }
      try (AbstractTransaction transaction = posts.multi()) {
        transaction.set("k", "v"); // closed without EXEC
      }
      try (AbstractTransaction transaction = posts.transaction(false)) {
        transaction.watch("k");
        assertThat(transaction.get("k").get()).isNull();
        plain.set("k", "changed");
        transaction.multi();
        transaction.set("k", "v");
        assertThat(transaction.exec()).isNull();
      }
      try (AbstractTransaction transaction = posts.multi()) {
        transaction.set("k", "v");
        transaction.sendCommand(() -> "NOSUCH".getBytes(StandardCharsets.US_ASCII), new byte[0]);
        assertThatThrownBy(transaction::exec).hasMessageContaining("EXECABORT");
      }
      assertThat(ids(scope)).isEmpty();
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void anUnknownOutcomeStaysPending_SCOPE_17() {
    UnifiedJedis posts = AntipodeRedis.wrap(servers.hasty("a", Duration.ofMillis(200)), options());
    posts.set("k", "v");
    try (LineageScope scope = Antipode.scope()) {
      servers.lab().freeze("redis", "a");
      try {
        assertThatThrownBy(() -> posts.set("k", "w")).isInstanceOf(JedisConnectionException.class);
      } finally {
        servers.lab().thaw("redis", "a");
      }
      assertThat(scope.pending()).hasSize(1);
      assertThat(scope.pending().get(0).isUnknown()).isTrue();
      assertThat(scope.outgoing().isComplete()).isFalse();
    }
  }

  @Test
  void aTransactionWithoutExecDidNotHappen_SCOPE_17() {
    UnifiedJedis posts = AntipodeRedis.wrap(servers.hasty("a", Duration.ofMillis(200)), options());
    posts.set("k", "v");
    try (LineageScope scope = Antipode.scope(); AbstractTransaction transaction = posts.multi()) {
      transaction.set("k", "w");
      servers.lab().freeze("redis", "a");
      try {
        assertThatThrownBy(transaction::exec).isInstanceOf(JedisConnectionException.class);
      } finally {
        servers.lab().thaw("redis", "a");
      }
      assertThat(scope.pending()).isEmpty();
    }
    assertThat(plain.get("k")).isEqualTo("v");
  }

  @Test
  void whereNothingCouldBeSentNothingIsPending() {
    UnifiedJedis posts = wrapped();
    servers.closeClients();
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> posts.set("k", "v")).isInstanceOf(RuntimeException.class);
      assertThat(scope.pending()).isEmpty();
    }
  }

  @Test
  void inModeOffNothingIsRecorded_CONF() {
    UnifiedJedis posts = AntipodeRedis.wrap(plain, options().mode(Mode.OFF));
    try (LineageScope scope = Antipode.scope()) {
      posts.set("k", "v");
      try (AbstractPipeline pipeline = posts.pipelined()) {
        pipeline.set("k", "v");
      }
      assertThat(ids(scope)).isEmpty();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void atAReplicaWritesFailAsEver() {
    UnifiedJedis posts = AntipodeRedis.wrap(servers.client("b1"), options());
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> posts.set("k", "v")).hasMessageContaining("READONLY");
      assertThat(posts.eval("return 7", 0)).isEqualTo(7L); // a script that only reads
      assertThat(ids(scope)).isEmpty();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void optionsThatCannotBeAreRefused() {
    assertThatThrownBy(() -> AntipodeRedis.wrap(plain, options().rest(Capabilities.Rest.ENVELOPE)))
        .isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> AntipodeRedis.wrap(plain, StoreOptions.named("x").replicas("http://u:secret@b1")))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageNotContaining("secret");
  }

  @Test
  void aServerThatIsDownIsNoErrorOfWrap() {
    UnifiedJedis posts = AntipodeRedis.wrap(
        redis.clients.jedis.RedisClient.create("127.0.0.1", 1), StoreOptions.named("down"));
    assertThat(logs.text()).contains("does not answer yet");
    assertThatThrownBy(() -> posts.set("k", "v")).isInstanceOf(JedisConnectionException.class);
    posts.close();
  }
}
