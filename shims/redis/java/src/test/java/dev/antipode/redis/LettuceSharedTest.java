package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierException;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.shim.PendingWrite;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/**
 * What must not come between one another on one connection of Lettuce: reads that wait, the application's WATCH and MULTI, its
 * batches; also where the connection is made anew meanwhile.
 */
class LettuceSharedTest extends WithLettuce {
  // The application's WATCH and MULTI

  @Test
  void aReadThatWaitedEndsNoWatch_SHIM_2() throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    plain.set("stock", "7");
    RedisFuture<String> read;
    try (Reading seen = Antipode.reading(ahead())) {
      read = posts.async().get("stock");
    }
    RedisFuture<String> watched = posts.async().watch("stock");
    advance();
    assertThat(get(read)).isEqualTo("7");
    assertThat(get(watched)).isEqualTo("OK");
    plain.set("stock", "6");
    posts.sync().multi();
    posts.sync().set("stock", "8");
    assertThat(posts.sync().exec().wasDiscarded()).isTrue(); // else the other one's write would be lost
    assertThat(plain.get("stock")).isEqualTo("6");
  }

  @Test
  void aReadThatWaitedComesIntoNoTransaction_SHIM_2() throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    plain.set("k", "v");
    RedisFuture<String> read;
    try (LineageScope scope = Antipode.scope()) {
      try (Reading seen = Antipode.reading(ahead())) {
        read = posts.async().get("k");
      }
      RedisFuture<String> multi = posts.async().multi();
      assertThat(posts.isMulti()).isTrue(); // as it is without Antipode
      RedisFuture<String> set = posts.async().set("x", "1");
      assertThat(scope.pendingStores()).containsExactly(STORE); // also while it waits for its turn
      advance();
      assertThat(get(read)).isEqualTo("v");
      assertThat(get(multi)).isEqualTo("OK");
      assertThat(plain.get("x")).isNull(); // the transaction is still open
      TransactionResult done = posts.sync().exec();
      assertThat(done.size()).isEqualTo(1);
      assertThat(get(set)).isEqualTo("OK");
      assertThat(plain.get("x")).isEqualTo("1");
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
    }
  }

  @Test
  void aReadThatHasToWaitIsNotDoneByATransactionThatIsOpenAlready_BAR_50() {
    StatefulRedisConnection<String, String> posts = posts();
    posts.sync().multi();
    try (Reading seen = Antipode.reading(ahead())) {
      posts.sync().get("k");
    }
    assertThatThrownBy(() -> posts.sync().exec())
        .isInstanceOf(BarrierException.class)
        .hasMessageContaining("MULTI");
    assertThat(posts.sync().ping()).isEqualTo("PONG");
  }

  @Test
  void aReadThatWaitsForNothingDoesNotFailWithItsTransactionsWait() {
    StatefulRedisConnection<String, String> posts =
        AntipodeLettuce.wrap(client().connect(), options().timeout(Duration.ofMillis(200)));
    plain.set("k", "v");
    try (Reading seen = Antipode.reading(ahead())) {
      posts.sync().multi(); // waits in vain, for whatever may be read
    }
    try (Reading seen = Antipode.reading()) {
      posts.sync().get("k");
      TransactionResult done = posts.sync().exec();
      assertThat((String) done.get(0)).isEqualTo("v");
      assertThat(seen.lineage().ofStore(STORE)).hasSize(1);
    }
  }

  @Test
  void aWriteThatIsCancelledBeforeItsTurnIsNotPending_SCOPE_17() throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      RedisFuture<String> multi;
      try (Reading seen = Antipode.reading(ahead())) {
        multi = posts.async().multi();
      }
      RedisFuture<String> ended = posts.async().discard();
      posts.async().set("x", "1").cancel(true);
      RedisFuture<String> last = posts.async().get("x");
      advance();
      assertThat(get(multi)).isEqualTo("OK");
      assertThat(get(ended)).isEqualTo("OK");
      assertThat(get(last)).isNull();
      assertThat(scope.pending()).isEmpty();
    }
  }

  /** Else Lettuce's own {@code sync()} answers null, as in a transaction. */
  @Test
  void aMultiThatIsGivenUpBeforeItsTurnIsNoTransaction_SHIM_2() throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    plain.set("k", "v");
    RedisFuture<String> read;
    try (Reading seen = Antipode.reading(ahead())) {
      read = posts.async().get("k");
    }
    RedisFuture<String> multi = posts.async().multi();
    assertThat(posts.isMulti()).isTrue();
    multi.cancel(true);
    assertThat(posts.isMulti()).isFalse();
    RedisFuture<String> next = posts.async().multi();
    advance();
    assertThat(get(read)).isEqualTo("v");
    assertThat(get(next)).isEqualTo("OK");
    assertThat(posts.isMulti()).as("of the next one, whatever became of the one before").isTrue();
    assertThat(posts.sync().exec().isEmpty()).isTrue();
    assertThat(posts.sync().get("k")).isEqualTo("v");
  }

  @Test
  void aMultiThatTheServerRefusesEndsNoOther_SHIM_2() {
    StatefulRedisConnection<String, String> posts = posts();
    posts.sync().multi();
    assertThatThrownBy(() -> posts.sync().multi()).hasMessageContaining("nested");
    assertThat(posts.isMulti()).isTrue();
    posts.sync().discard();
    assertThat(posts.isMulti()).isFalse();
  }

  @Test
  void whatIsIssuedBeforeTheApplicationFlushesByItselfLeavesByItself_SHIM_2() throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    plain.set("k", "v");
    RedisFuture<String> read;
    try (Reading seen = Antipode.reading(ahead())) {
      read = posts.async().get("k");
    }
    posts.async().multi();
    RedisFuture<String> set = posts.async().set("x", "1");
    RedisFuture<TransactionResult> exec = posts.async().exec();
    posts.setAutoFlushCommands(false);
    RedisFuture<String> batched = posts.async().get("x");
    advance();
    assertThat(get(read)).isEqualTo("v");
    assertThat(get(exec).size()).isEqualTo(1); // nobody has called flushCommands()
    assertThat(get(set)).isEqualTo("OK");
    assertThat(batched.isDone()).isFalse();
    posts.flushCommands();
    assertThat(get(batched)).isEqualTo("1");
  }

  /**
   * The transaction ends on another thread, at each of the first steps at which a command is looked at. From the fifth or so on
   * it may be netty that looks, while it encodes: whether Lettuce answers a command then is Lettuce's own affair.
   */
  @Test
  void aTransactionThatEndsWhileACommandIsQueuedGivesLettucesOwnError_SHIM_2() {
    for (int step = 1; step <= 4; step++) {
      StatefulRedisConnection<String, String> posts = posts();
      try (LineageScope scope = Antipode.scope()) {
        posts.sync().multi();
        RedisFuture<String> queued = LettuceEnding.at(step, posts);
        posts.close();
        assertThatThrownBy(() -> get(queued)).as("step " + step).hasMessageContaining("closed");
        assertThat(scope.pending()).as("step " + step).allMatch(PendingWrite::isUnknown);
      }
    }
  }

  @Test
  void whatIsQueuedInATransactionThatIsOverHasEnded_SCOPE_17() {
    RecordingConnection<String, String> posts = (RecordingConnection<String, String>) posts();
    for (boolean mayHaveHappened : List.of(true, false)) {
      try (LineageScope scope = Antipode.scope()) {
        LettuceTransaction<String, String> over = new LettuceTransaction<>(posts.binding(), posts.line(), null);
        over.dropped(mayHaveHappened);
        over.writes(Commands.Kind.WRITE, CommandWords.of("SET", "k", "v"));
        assertThat(scope.pending()).hasSize(1).allMatch(PendingWrite::isUnknown);
      }
    }
  }

  @Test
  void aLookThatFailsLeavesTheConnectionOpen() {
    RecordingConnection<String, String> posts = (RecordingConnection<String, String>) posts();
    try (Reading seen = Antipode.reading(ahead())) {
      for (boolean answers : List.of(true, false)) {
        ReadCall call = ReadCall.of(posts.binding(), false);
        if (answers) { // with the epoch known nothing but the place is asked, and it is the answer that cannot be judged
          call.isElsewhere(here());
        }
        AtomicInteger told = new AtomicInteger();
        new LettuceLooks<>(null, posts.line(), call).waitFirst(true, told::incrementAndGet); // without a store it throws
        RedisServers.until(() -> told.get() > 0, "who waits for the look is told");
        assertThat(told.get()).isEqualTo(1);
        assertThatThrownBy(call::finish).isInstanceOf(BarrierException.class);
      }
    }
  }

  // The next connection

  @Test
  void aTransactionWhoseConnectionWasMadeAnewMayHaveHappened_SCOPE_17() {
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      StatefulRedisConnection<String, String> posts = through(proxy);
      posts.sync().multi();
      proxy.cutAll();
      posts.sync().set("x", "1"); // the next connection has no MULTI
      assertThatThrownBy(() -> posts.sync().exec()).hasMessageContaining("EXEC without MULTI");
      assertThat(plain.get("x")).isEqualTo("1");
      assertThat(scope.pending()).hasSize(1);
      assertThat(scope.outgoing().isComplete()).isFalse();
    }
  }

  @Test
  void aDiscardThatCameTooLateDiscardsNothing_SCOPE_17() {
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      StatefulRedisConnection<String, String> posts = through(proxy);
      posts.sync().multi();
      posts.sync().set("x", "0");
      assertThat(posts.sync().discard()).isEqualTo("OK");
      assertThat(scope.pending()).isEmpty();
      posts.sync().multi();
      proxy.cutAll();
      posts.sync().set("x", "1");
      assertThatThrownBy(() -> posts.sync().discard()).hasMessageContaining("DISCARD without MULTI");
      assertThat(plain.get("x")).isEqualTo("1");
      assertThat(scope.pending()).hasSize(1);
    }
  }

  @Test
  void aReadThatTheNextConnectionRepeatsWasNotWaitedForThere_BAR_50() throws Exception {
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port())) {
      StatefulRedisConnection<String, String> posts = posts();
      StatefulRedisConnection<String, String> there = through(proxy);
      servers.lab().partition("redis", "b2");
      try (LineageScope scope = Antipode.scope()) {
        String last = posts.sync().xadd("stream", "f", "v");
        RedisFuture<?> read;
        try (Reading seen = Antipode.reading(scope.lineage())) {
          read = blocking(there, last);
        }
        RedisServers.until(() -> plain.info("clients").contains("blocked_clients:1"), "the read blocks");
        proxy.moveTo(servers.servers().get("b2").port()); // as Sentinels, or a name, lead elsewhere
        assertThatThrownBy(() -> get(read)).hasRootCauseInstanceOf(BarrierException.class);
      } finally {
        servers.lab().heal("redis", "b2");
      }
    }
  }

  @SuppressWarnings("unchecked") // an array of generics is Lettuce's own
  private static RedisFuture<?> blocking(StatefulRedisConnection<String, String> connection, String last) {
    return connection.async().xread(XReadArgs.Builder.block(1000), XReadArgs.StreamOffset.from("stream", last));
  }

  // Batches

  @Test
  void aBatchThatWasNeverFlushedIsToldOfTheEnd_SCOPE_17() {
    for (boolean shutsDown : List.of(false, true)) {
      RedisClient own = RedisClient.create(LettuceResources.SHARED, RedisURI.create(servers.url("a")));
      StatefulRedisConnection<String, String> inner = own.connect();
      try (LineageScope scope = Antipode.scope()) {
        StatefulRedisConnection<String, String> posts = AntipodeLettuce.wrap(inner, options());
        posts.setAutoFlushCommands(false);
        RedisFuture<String> set = posts.async().set("x", "1");
        assertThat(scope.pending()).hasSize(1);
        if (shutsDown) {
          own.shutdown(0, 2, TimeUnit.SECONDS);
        } else {
          inner.close();
        }
        assertThatThrownBy(() -> get(set)).hasMessageContaining("closed");
        assertThat(scope.pending()).isEmpty();
      } finally {
        own.shutdown(0, 2, TimeUnit.SECONDS);
      }
    }
  }

  @Test
  void whoExecutesHasItsWriteFromWhenItIsIssued_SCOPE_24() throws Exception {
    for (boolean isBatch : new boolean[] {false, true}) {
      StatefulRedisConnection<String, String> posts = posts();
      try (Reading seen = Antipode.reading(ahead())) {
        posts.async().get("k"); // what comes behind it waits for its turn
      }
      LineageScope queueing = Antipode.scope();
      try (queueing) {
        if (isBatch) {
          posts.setAutoFlushCommands(false);
        } else {
          posts.async().multi();
        }
        posts.async().set("x", "1");
      }
      try (LineageScope executing = Antipode.scope()) {
        RedisFuture<TransactionResult> exec = null;
        if (isBatch) {
          posts.flushCommands();
        } else {
          exec = posts.async().exec();
        }
        assertThat(executing.pendingStores()).containsExactly(STORE);
        advance();
        if (exec != null) {
          get(exec);
        }
        RedisServers.until(() -> executing.pending().isEmpty(), "the reply");
        assertThat(executing.lineage().ofStore(STORE)).hasSize(1);
        assertThat(executing.lineage().isComplete()).isTrue();
      }
    }
  }
}
