package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.ConfigurationException;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.reactive.RedisReactiveCommands;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Protocol;

/** What is Lettuce's own: its types, threads and futures that share a connection, writes that are repeated on the next one. */
class LettuceTest extends WithLettuce {
  private static List<WriteId> ids(LineageScope scope) {
    return scope.lineage().ofStore(STORE);
  }

  private static long counter(LineageScope scope) {
    return ((Ordered) ids(scope).get(0).version()).counter();
  }

  @Test
  void typedRepliesStayLettucesOwn_SHIM_2() {
    StatefulRedisConnection<String, String> posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.sync().hset("h", Map.of("a", "1"))).isEqualTo(1);
      assertThat(posts.sync().hgetall("h")).containsExactly(Map.entry("a", "1"));
      assertThat(posts.sync().lpush("l", "x", "y")).isEqualTo(2);
      assertThat(posts.sync().expire("h", 100)).isTrue();
      assertThat(posts.sync().zadd("z", 1.5, "m")).isEqualTo(1);
      assertThat(posts.sync().zscore("z", "m")).isEqualTo(1.5);
      assertThat(posts.sync().incrbyfloat("f", 0.5)).isEqualTo(0.5);
      assertThat(posts.sync().blpop(1, "l")).isEqualTo(KeyValue.just("l", "y"));
      assertThat(ids(scope)).hasSize(1);
      posts.sync().multi();
      assertThat(posts.isMulti()).isTrue();
      RedisFuture<Map<String, String>> all = posts.async().hgetall("h");
      TransactionResult done = posts.sync().exec();
      assertThat(done.size()).isEqualTo(1);
      assertThat(all.toCompletableFuture().join()).containsOnlyKeys("a");
      assertThat(posts.isMulti()).isFalse();
    }
    posts.sync().select(1); // is done again where the connection is made anew: it is the plain one's
    assertThat(posts.isOpen()).isTrue();
    posts.close();
    assertThat(posts.isOpen()).isFalse();
  }

  @Test
  void manyThreadsShareAConnection_eachWriteIsCoveredInItsOwnScope_SHIM_8() throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    ExecutorService threads = Executors.newFixedThreadPool(8);
    try {
      List<Future<?>> all = new ArrayList<>();
      for (int thread = 0; thread < 8; thread++) {
        int own = thread;
        all.add(threads.submit(() -> {
          for (int number = 0; number < 100; number++) {
            long before = number % 20 == 0 ? here().offset() : 0;
            try (LineageScope scope = Antipode.scope()) {
              posts.sync().set("k" + own, "v" + number);
              assertThat(ids(scope)).hasSize(1);
              assertThat(scope.lineage().isComplete()).isTrue();
              assertThat(scope.pending()).isEmpty();
              assertThat(counter(scope)).isGreaterThan(before);
            }
          }
          return null;
        }));
      }
      for (Future<?> each : all) {
        each.get(50, TimeUnit.SECONDS);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void aFutureBelongsToTheScopeInWhichItWasIssued_SCOPE_14() throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    LineageScope scope = Antipode.scope();
    CompletableFuture<String> written;
    try (scope) {
      plain.executeCommand(
          new CommandArguments(Protocol.Command.CLIENT).add("PAUSE").add("300").add("WRITE")); // the reply comes later
      written = posts.async().set("k", "v").toCompletableFuture();
      assertThat(scope.pendingStores()).containsExactly(STORE);
      assertThat(scope.outgoing().isComplete()).isFalse();
      assertThat(scope.publishedBeforeCommit()).isEmpty(); // in flight, which is no transaction (SCOPE-18)
      try (LineageScope other = Antipode.scope()) {
        assertThat(written.get(20, TimeUnit.SECONDS)).isEqualTo("OK");
        assertThat(ids(other)).isEmpty();
      }
      assertThat(ids(scope)).hasSize(1);
      assertThat(scope.pending()).isEmpty();
    }
  }

  @Test
  void aReactiveWriteBelongsToWhereItIsSubscribedTo_elseToWhereItWasMade_SCOPE_14() {
    RedisReactiveCommands<String, String> posts = posts().reactive();
    Mono<String> made;
    try (LineageScope scope = Antipode.scope()) {
      made = posts.set("k", "v");
      assertThat(ids(scope)).isEmpty(); // nothing is sent before somebody subscribes
      assertThat(made.subscribeOn(Schedulers.boundedElastic()).block()).isEqualTo("OK"); // a thread without a scope
      assertThat(ids(scope)).hasSize(1);
      try (LineageScope inner = Antipode.scope()) {
        assertThat(made.block()).isEqualTo("OK"); // once more
        assertThat(ids(inner)).hasSize(1);
      }
    }
  }

  @Test
  void anAnswerOfTheNextConnectionCoversNoWriteOfTheOneBefore_EPOCH_1() {
    // The write's reply comes, the connection breaks, and Lettuce repeats the question on the next one.
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      StatefulRedisConnection<String, String> posts = through(proxy);
      assertThat(posts.sync().set("k", "v")).isEqualTo("OK");
      assertThat(scope.lineage().isComplete()).isTrue();
      WriteId first = ids(scope).get(0);
      proxy.cutAfter("+OK\r\n");
      assertThat(posts.sync().set("k", "w")).isEqualTo("OK"); // the application has its reply all the same
      assertThat(scope.lineage().isComplete()).isFalse();
      assertThat(ids(scope)).containsExactly(first);
      assertThat(scope.pending()).isEmpty();
      assertThat(posts.sync().get("k")).isEqualTo("w");
      assertThat(posts.sync().set("k", "x")).isEqualTo("OK");
      assertThat(((Ordered) ids(scope).get(0).version()).compareCounter(((Ordered) first.version()).counter()))
          .isPositive();
    }
  }

  @Test
  void aWriteThatIsRepeatedIsCoveredByTheAttemptThatSucceeds() {
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      StatefulRedisConnection<String, String> posts = through(proxy);
      posts.sync().set("n", "0");
      proxy.cutAnswerTo("INCR"); // at least once, as Lettuce has it
      assertThat(posts.sync().incr("n")).isEqualTo(2);
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(counter(scope)).isLessThanOrEqualTo(here().offset());
      assertThat(scope.pending()).isEmpty();
    }
  }

  @Test
  void aRepeatedWriteThatIsRefusedMayHaveHappened_SCOPE_17() {
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      StatefulRedisConnection<String, String> posts = through(proxy);
      posts.sync().set("k", "v");
      proxy.cutAnswerTo("RENAME");
      // The first attempt takes the old key away, so the second one is refused.
      assertThatThrownBy(() -> posts.sync().rename("k", "l")).hasMessageContaining("no such key");
      assertThat(scope.pending()).hasSize(1);
      assertThat(scope.outgoing().isComplete()).isFalse();
    }
  }

  @Test
  void commandsThatTimeOutByThemselvesAreUnknown_SCOPE_17() {
    client().setOptions(
        ClientOptions.builder().timeoutOptions(TimeoutOptions.enabled(Duration.ofSeconds(1))).build());
    StatefulRedisConnection<String, String> posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      posts.sync().set("k", "v");
      assertThat(ids(scope)).hasSize(1);
      servers.lab().freeze("redis", "a");
      try {
        CompletableFuture<String> written = posts.async().set("k", "w").toCompletableFuture();
        assertThatThrownBy(() -> written.get(20, TimeUnit.SECONDS)).hasMessageContaining("timed out");
      } finally {
        servers.lab().thaw("redis", "a");
      }
      assertThat(scope.pending()).hasSize(1);
      assertThat(scope.pending().get(0).isUnknown()).isTrue();
    }
  }

  @Test
  void credentialsThatDoNotComeAreNoHang() {
    for (Mono<RedisCredentials> given : List.of(
        Mono.<RedisCredentials>never(), Mono.<RedisCredentials>error(new IllegalStateException("no vault")))) {
      RedisURI place = RedisURI.create(servers.url("a"));
      place.setCredentialsProvider(() -> given);
      assertThatThrownBy(() -> new Session(Target.of(place), 200)).isInstanceOf(IOException.class);
    }
  }

  @Test
  void connectionsOfOtherKindsAreRefused() {
    assertThatThrownBy(() -> AntipodeLettuce.wrap(client().connectPubSub(), STORE))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("cannot be wrapped");
    StatefulRedisConnection<String, String> posts = posts();
    assertThat(AntipodeLettuce.wrap(posts, options()).sync().ping()).isEqualTo("PONG"); // once more is harmless
    posts.close();
  }

  @Test
  void aWrappedConnectionIsAServerOfAStore() {
    StatefulRedisConnection<String, String> posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      posts.sync().set("k", "v");
      assertThat(Target.of(posts).address()).isEqualTo(servers.url("a"));
      assertThat(Target.of(RedisURI.create(servers.url("a"))).address()).isEqualTo(servers.url("a"));
      AntipodeLettuce.register(StoreOptions.named(STORE).replicas(RedisURI.create(servers.url("b1"))));
      assertThat(Antipode.barrier(BarrierOptions.defaults()).satisfied()).isTrue();
    }
  }
}
