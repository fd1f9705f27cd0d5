package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Reading;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Protocol;

/** Barriers, reads that wait, and reading blocks (SHIM-12, SHIM-13, SHIM-15, SHIM-19; BAR-50). */
class ReadsTest extends WithClients {
  private static final String SERVER = "b2";

  private TestClient reader(StoreOptions options) {
    return at(SERVER, options);
  }

  private static Lineage written(TestClient posts, String key, String value) {
    try (LineageScope scope = Antipode.scope()) {
      posts.call("SET", key, value);
      return scope.lineage();
    }
  }

  @Test
  void aBarrierWaitsForTheReplicas_SHIM_15() {
    TestClient posts = posts();
    for (int number = 0; number < 20; number++) {
      Lineage lineage = written(posts, "k", "v" + number);
      BarrierResult result = Antipode.barrier(BarrierOptions.defaults().lineage(lineage));
      assertThat(result.satisfied()).isTrue();
      assertThat(servers.client(SERVER).get("k")).isEqualTo("v" + number);
    }
  }

  @Test
  void aBarrierDoesNotPassBeforeTheReplica() {
    TestClient posts = posts();
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
    TestClient posts = posts();
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
    Lineage lineage = written(posts(StoreOptions.named("elsewhere")), "k", "v");
    WriteId id = lineage.ids().get(0);
    AntipodeRedis.register(StoreOptions.named(STORE).replicas(servers.url("b1")));
    Ordered position = (Ordered) id.version();
    Lineage here = Lineage.of(WriteId.position(STORE, position.epoch(), position.counter()));
    BarrierResult result = Antipode.barrier(BarrierOptions.defaults().lineage(here).stores(STORE));
    assertThat(result.store(STORE).verdict()).isEqualTo(Verdict.VISIBLE);
  }

  @Test
  void eachReadWaitsFirst_BAR_50() {
    TestClient posts = posts();
    TestClient there = reader(options().waitOnRead(true));
    for (int number = 0; number < 10; number++) {
      String value = "v" + number;
      try (LineageScope scope = Antipode.scope()) {
        posts.call("SET", "k", value);
        assertThat(there.call("GET", "k")).isEqualTo(value);
        posts.call("SET", "k2", value);
        try (TestClient.Batch batch = there.batch()) {
          assertThat(batch.add("GET", "k2").send()).containsExactly(value);
        }
        posts.call("SET", "k3", value);
        try (TestClient.Transaction transaction = there.transaction()) {
          transaction.watch("k3");
          assertThat(transaction.call("GET", "k3")).isEqualTo(value);
        }
        posts.call("SET", "k4", value);
        try (TestClient.Transaction transaction = there.transaction()) {
          transaction.multi();
          transaction.add("GET", "k4");
          assertThat(transaction.exec()).containsExactly(value);
        }
        posts.call("XADD", "stream", "1-" + (number + 1), "f", value);
        assertThat(there.call("XREAD", "COUNT", "1", "BLOCK", "1", "STREAMS", "stream", "1-" + number).toString())
            .contains(value);
      }
    }
  }

  @Test
  void eachReadOfABatchWaitsForItsOwn_BAR_50() {
    TestClient posts = posts();
    TestClient there = reader(options());
    for (int number = 0; number < 5; number++) {
      String value = "v" + number;
      Lineage first = written(posts, "k", value);
      try (TestClient.Batch batch = there.batch()) {
        try (Reading seen = Antipode.reading()) {
          batch.add("GET", "other"); // only collects
        }
        try (Reading seen = Antipode.reading(first)) {
          batch.add("GET", "k");
        }
        Lineage second = written(posts, "k2", value);
        try (Reading seen = Antipode.reading(second)) {
          batch.add("GET", "k2");
        }
        assertThat(batch.send()).containsExactly(null, value, value);
      }
    }
  }

  @Test
  void aReadThatWaitedInVainThrows_BAR_50() {
    TestClient posts = posts();
    TestClient there = reader(options().waitOnRead(true).timeout(Duration.ofMillis(200)));
    servers.lab().partition("redis", SERVER);
    try (LineageScope scope = Antipode.scope()) {
      posts.call("SET", "k", "v");
      assertThatThrownBy(() -> there.call("GET", "k"))
          .isInstanceOf(BarrierException.class)
          .hasMessageContaining("(wait on read)");
    } finally {
      servers.lab().heal("redis", SERVER);
    }
  }

  @Test
  void readingCoversWhatWasRead_SHIM_13() {
    TestClient posts = posts();
    Lineage lineage = written(posts, "k", "v");
    try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
      assertThat(posts.call("GET", "k")).isEqualTo("v");
      assertThat(lineage.isCoveredBy(seen.lineage())).isTrue();
      assertThat(scope.lineage().isEmpty()).isTrue(); // SHIM-12
    }
    try (Reading seen = Antipode.reading(); TestClient.Batch batch = posts.batch()) {
      assertThat(batch.add("GET", "k").send()).isEqualTo(List.of("v"));
      assertThat(lineage.isCoveredBy(seen.lineage())).isTrue();
    }
    try (Reading seen = Antipode.reading()) {
      assertThatThrownBy(() -> posts.call("LLEN", "k")).hasMessageContaining("WRONGTYPE"); // the error stays the client's own
      assertThat(posts.call("GET", "k")).isEqualTo("v");
      assertThat(seen.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void whatWasQueuedBeforeAWriteWaitsForItWhenItIsSent_BAR_51() {
    TestClient posts = posts();
    TestClient there = reader(options().waitOnRead(true));
    for (int number = 0; number < 5; number++) {
      String value = "v" + number;
      try (LineageScope scope = Antipode.scope(); TestClient.Batch batch = there.batch()) {
        batch.add("GET", "k").add("EVAL", "return redis.call('GET', KEYS[1])", "1", "k");
        posts.call("SET", "k", value);
        assertThat(batch.send()).containsExactly(value, value);
        assertThat(scope.isClosed()).isFalse();
      }
    }
  }

  /** Behind Lettuce's MULTI nothing can wait; Jedis sends it with EXEC. */
  @Test
  void whatWasQueuedInATransactionShowsWhatIsHeldAtItsExec_SHIM_48() {
    TestClient posts = posts();
    TestClient there = reader(options().waitOnRead(true));
    for (boolean isQueuedInside : new boolean[] {true, false}) {
      for (int number = 0; number < 5; number++) {
        String value = isQueuedInside + " " + number;
        try (TestClient.Transaction transaction = there.transaction()) {
          if (!isQueuedInside) {
            transaction.multi();
            transaction.add("GET", "k");
          }
          try (LineageScope scope = Antipode.scope()) {
            if (isQueuedInside) {
              transaction.multi();
              transaction.add("GET", "k");
            }
            posts.call("SET", "k", value);
            if (kind == ClientKind.JEDIS) {
              assertThat(transaction.exec()).containsExactly(value);
            } else {
              assertThatThrownBy(transaction::exec).hasStackTraceContaining("AP514");
            }
            assertThat(scope.isClosed()).isFalse();
          }
        }
      }
    }
  }

  @Test
  void readingAfterALineageWaits() {
    TestClient posts = posts();
    TestClient there = reader(options());
    for (int number = 0; number < 10; number++) {
      Lineage lineage = written(posts, "k", "v" + number);
      try (Reading seen = Antipode.reading(lineage)) {
        assertThat(there.call("GET", "k")).isEqualTo("v" + number);
      }
    }
  }

  @Test
  void withAutomaticMergingReadsJoinTheScope() {
    TestClient posts = posts();
    Lineage lineage = written(posts, "k", "v");
    Antipode.configure(Antipode.settings().autoMerge(true));
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.call("GET", "k")).isEqualTo("v");
      assertThat(lineage.isCoveredBy(scope.lineage())).isTrue();
    }
    try (LineageScope scope = Antipode.scope(); TestClient.Transaction transaction = posts.transaction()) {
      transaction.multi();
      transaction.add("GET", "k");
      assertThat(transaction.exec()).containsExactly("v");
      assertThat(lineage.isCoveredBy(scope.lineage())).isTrue();
    }
  }

  @Test
  void whatMayWriteAndMayReadWaitsFirst_SHIM_44() {
    TestClient posts = posts();
    TestClient there = reader(options().waitOnRead(true));
    Object[] script = {"EVAL", "return redis.call('GET', KEYS[1])", "1", "k"};
    for (int number = 0; number < 5; number++) {
      try (LineageScope scope = Antipode.scope()) {
        posts.call("SET", "k", number + " by itself");
        assertThat(there.call(script)).isEqualTo(number + " by itself");
        posts.call("SET", "k", number + " in a batch");
        try (TestClient.Batch batch = there.batch()) {
          assertThat(batch.add(script).send()).containsExactly(number + " in a batch");
        }
        posts.call("SET", "k", number + " in MULTI");
        try (TestClient.Transaction transaction = there.transaction()) {
          transaction.multi();
          transaction.add(script);
          assertThat(transaction.exec()).containsExactly(number + " in MULTI");
        }
        assertThat(scope.pending()).isEmpty();
      }
    }
    try (Reading seen = Antipode.reading()) {
      there.call(script);
      assertThat(seen.lineage().ofStore(STORE)).hasSize(1);
    }
  }

  @Test
  void aScriptThatWaitedInVainIsNotSent_SHIM_44() {
    TestClient posts = posts(options().waitOnRead(true).timeout(Duration.ofMillis(200)));
    Ordered now = here().position();
    try (LineageScope scope = Antipode.scope()) {
      scope.append(WriteId.position(STORE, now.epoch(), now.counter() + 1_000_000));
      Object[][] refused = {
          {"EVAL", "return redis.call('SET', KEYS[1], 'v')", "1", "k"},
          {"INCR", "k"},
          {"GETSET", "k", "v"},
          {"SET", "k", "v", "GET"}
      };
      for (Object[] command : refused) {
        assertThatThrownBy(() -> posts.call(command)).isInstanceOf(BarrierException.class);
        assertThat(scope.pending()).isEmpty();
      }
    }
    assertThat(plain.get("k")).isNull();
  }

  /** An address may come to lead to another server, while our own open connection stays at the old one. */
  @Test
  void whatReadsIsNotSent_whereItsStoreIsMisspelt_BAR_51() {
    TestClient posts = posts(options().waitOnRead(true));
    WriteId own = written(posts, "k", "v").ids().get(0);
    String misspelt = STORE.toUpperCase(Locale.ROOT);
    Lineage lineage = Lineage.of(new WriteId(misspelt, own.key(), own.version()));
    try (LineageScope scope = Antipode.scope(lineage)) {
      assertRefused(() -> posts.call("EVAL", "return redis.call('SET', KEYS[1], 'sent')", "1", "by a script"));
      try (TestClient.Transaction transaction = posts.transaction()) {
        transaction.watch("k");
        transaction.multi();
        transaction.add("GET", "k");
        transaction.add("SET", "in a transaction", "sent");
        assertRefused(transaction::exec);
      }
      assertThat(scope.lineage()).isEqualTo(lineage);
      assertThat(scope.pending()).isEmpty();
      try (TestClient.Batch batch = posts.batch()) {
        assertRefused(() -> {
          for (Object reply : batch.add("SET", "before", "sent").add("GET", "k").send()) {
            if (reply instanceof RuntimeException refused) {
              throw refused;
            }
          }
        });
      }
      assertThat(scope.lineage().ofStore(STORE)).isNotEmpty();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
    assertThat(servers.client("a").exists("by a script", "in a transaction")).isZero();
    servers.client("a").set("k", "another");
    try (TestClient.Transaction transaction = posts.transaction()) {
      transaction.multi();
      transaction.add("SET", "in another", "sent");
      assertThat(transaction.exec()).as("nothing is watched any more").isNotNull();
    }
    assertThat(posts.call("GET", "k")).isEqualTo("another");
  }

  private static void assertRefused(ThrowingCallable work) {
    assertThatThrownBy(work).isInstanceOfSatisfying(
        BarrierUnprovenException.class, refused -> assertThat(refused.code()).isEqualTo("AP107"));
  }

  @Test
  void anAddressThatMovesIsFollowed_BAR_55() {
    Antipode.configure(Settings.defaults().reconnect(Duration.ofMillis(200)));
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("b1").port())) {
      TestClient posts = posts(StoreOptions.named(STORE).replicas("redis://127.0.0.1:" + proxy.port()));
      BarrierOptions options = BarrierOptions.defaults().timeout(Duration.ofMillis(100)).onTimeout(Policy.PROCEED);
      Lineage before = written(posts, "k", "v");
      RedisServers.until(() -> Antipode.barrier(options.lineage(before)).satisfied(), "it passes at b1");
      servers.lab().partition("redis", SERVER);
      try {
        proxy.leadTo(servers.servers().get(SERVER).port());
        Lineage lost = written(posts, "k", "w");
        RedisServers.until(() -> !Antipode.barrier(options.lineage(lost)).satisfied(), "it is asked where that leads now");
        assertThat(servers.client(SERVER).get("k")).isNotEqualTo("w");
        assertThat(Antipode.barrier(options.lineage(lost)).satisfied()).isFalse();
      } finally {
        servers.lab().heal("redis", SERVER);
      }
    }
  }

  /** After a failover the primary itself may have lost the write: then the fallback's read says so. */
  @Test
  void theFallbackIsJudgedToo_BAR_46() throws Exception {
    TestClient posts = posts(options().timeout(Duration.ofMillis(300)));
    BarrierOptions brief = BarrierOptions.defaults().timeout(Duration.ofMillis(100));
    servers.lab().partition("redis", SERVER);
    try {
      Lineage there = written(posts, "k", "v");
      Object found = Antipode.readOrFallback(() -> "replica", () -> posts.call("GET", "k"), brief.lineage(there));
      assertThat(found).isEqualTo("v");
      Ordered position = (Ordered) there.ids().get(0).version();
      Lineage lost = Lineage.of(WriteId.position(STORE, position.epoch(), position.counter() + 1_000_000));
      assertThatThrownBy(() -> Antipode.readOrFallback(() -> "replica", () -> posts.call("GET", "k"), brief.lineage(lost)))
          .isInstanceOf(BarrierException.class);
    } finally {
      servers.lab().heal("redis", SERVER);
    }
  }
}
