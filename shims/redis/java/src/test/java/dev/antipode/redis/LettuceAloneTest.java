package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierException;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.PendingWrite;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisCredentials;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;

/** A transaction of Lettuce that its server did not have: what was queued in it is executed by itself. */
class LettuceAloneTest extends WithLettuce {
  /** A position that the primary has. */
  private static Lineage at(Replication place) {
    return Lineage.of(WriteId.position(STORE, place.position().epoch(), place.offset()));
  }

  private static void assertIsIncomplete(Reading seen) {
    assertThat(seen.lineage().isComplete()).isFalse();
    assertThat(seen.lineage().ofStore(STORE)).isEmpty();
  }

  private static RedisFuture<?> end(StatefulRedisConnection<String, String> connection, boolean executes) {
    return executes ? connection.async().exec() : connection.async().discard();
  }

  // The connection is made anew behind MULTI

  @Test
  void aReadThatTheNextConnectionExecutedByItselfIsIncomplete_SHIM_13() throws Exception {
    plain.set("k", "v");
    Antipode.configure(Antipode.settings().autoMerge(true));
    for (boolean executes : List.of(true, false)) {
      try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
          LineageScope scope = Antipode.scope();
          Reading seen = Antipode.reading()) {
        StatefulRedisConnection<String, String> posts = through(proxy);
        posts.sync().multi();
        proxy.cutAll();
        RedisFuture<String> read = posts.async().get("k");
        assertThatThrownBy(() -> get(end(posts, executes)))
            .hasMessageContaining("without MULTI");
        assertThat(get(read)).as("Lettuce gives it all the same").isEqualTo("v");
        assertIsIncomplete(seen);
        assertThat(scope.lineage().isComplete()).isFalse();
      }
    }
  }

  @Test
  void aReadThatTheNextConnectionExecutedByItselfWasNotWaitedForThere_BAR_50() throws Exception {
    plain.set("k", "v");
    servers.lab().partition("redis", "b2");
    try {
      for (boolean executes : List.of(true, false)) {
        plain.set("k", "w");
        try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
            Reading seen = Antipode.reading(at(here()))) {
          StatefulRedisConnection<String, String> posts = through(proxy);
          posts.sync().multi(); // has waited
          proxy.moveTo(servers.servers().get("b2").port()); // as Sentinels, or a name, lead elsewhere
          posts.async().get("k");
          assertThatThrownBy(() -> get(end(posts, executes)))
              .hasRootCauseInstanceOf(BarrierException.class);
          assertIsIncomplete(seen);
        }
      }
    } finally {
      servers.lab().heal("redis", "b2");
    }
  }

  @Test
  void aDiscardThatIsGivenUpMarksWhatTheNextConnectionExecuted_SHIM_13() throws Exception {
    plain.set("k", "v");
    try (CuttingProxy proxy = new CuttingProxy(servers.servers().get("a").port());
        Reading seen = Antipode.reading()) {
      StatefulRedisConnection<String, String> posts = through(proxy);
      posts.sync().multi();
      proxy.cutAll();
      RedisFuture<String> read = posts.async().get("k");
      RedisServers.until(() -> calls("get") > 0, "it is executed");
      servers.lab().freeze("redis", "a");
      try {
        posts.async().discard().cancel(true);
      } finally {
        servers.lab().thaw("redis", "a");
      }
      assertThat(get(read)).isEqualTo("v");
      assertIsIncomplete(seen);
    }
  }

  /** Its values come late, when the application has long been told that nothing is known. */
  @Test
  void anExecWhoseReplyWasNotWaitedForMarksItsReads_SHIM_13() throws Exception {
    plain.set("k", "v");
    try (Reading seen = Antipode.reading()) {
      StatefulRedisConnection<String, String> posts = posts();
      posts.sync().multi();
      RedisFuture<String> read = posts.async().get("k");
      posts.setTimeout(Duration.ofMillis(300));
      servers.lab().freeze("redis", "a");
      try {
        assertThatThrownBy(() -> posts.sync().exec()).isInstanceOf(RedisCommandTimeoutException.class);
      } finally {
        servers.lab().thaw("redis", "a");
      }
      assertThat(get(read)).isEqualTo("v");
      assertIsIncomplete(seen);
    }
  }

  // MULTI is refused

  private StatefulRedisConnection<String, String> without(String right) {
    servers.lab().verb("redis", "create_user", "poor", "secret", "~*", "&*", "+@all", "-" + right);
    RedisURI place = RedisURI.create(servers.url("a"));
    place.setCredentialsProvider(() -> Mono.just(RedisCredentials.just("poor", "secret")));
    return AntipodeLettuce.wrap(client().connect(StringCodec.UTF8, place), options());
  }

  @ParameterizedTest
  @ValueSource(strings = {"multi", "@transaction"})
  void whatARefusedMultiDidNotQueueIsIncompleteOrUnknown_SHIM_13_SCOPE_17(String right) throws Exception {
    plain.set("k", "v");
    StatefulRedisConnection<String, String> posts = without(right);
    for (boolean batch : List.of(true, false)) {
      for (boolean writes : List.of(true, false)) {
        try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
          posts.setAutoFlushCommands(!batch);
          servers.lab().freeze("redis", "a"); // no error comes before EXEC is sent
          RedisFuture<String> multi = posts.async().multi();
          RedisFuture<String> read = posts.async().get("k");
          if (writes) {
            posts.async().set("x", right + batch);
          }
          RedisFuture<TransactionResult> exec = posts.async().exec();
          posts.flushCommands();
          servers.lab().thaw("redis", "a");
          assertThatThrownBy(() -> get(multi)).hasMessageContaining("NOPERM");
          assertThatThrownBy(() -> get(exec)).hasMessageContaining(right.equals("multi") ? "without MULTI" : "NOPERM");
          assertThat(get(read)).isEqualTo("v");
          assertIsIncomplete(seen);
          if (writes) {
            assertThat(plain.get("x")).isEqualTo(right + batch);
            assertThat(scope.pending()).hasSize(1).allMatch(PendingWrite::isUnknown);
            assertThat(scope.outgoing().isComplete()).isFalse();
          }
        } finally {
          posts.setAutoFlushCommands(true);
        }
      }
    }
  }

  @Test
  void aReadThatWasWaitedForBeforeARefusedMultiFailsItsExec_BAR_50() throws Exception {
    plain.set("k", "v");
    StatefulRedisConnection<String, String> posts = without("multi");
    try (Reading seen = Antipode.reading(at(here()))) {
      posts.setAutoFlushCommands(false);
      posts.async().multi();
      RedisFuture<String> read = posts.async().get("k");
      RedisFuture<TransactionResult> exec = posts.async().exec();
      posts.flushCommands();
      assertThatThrownBy(() -> get(exec)).hasRootCauseInstanceOf(BarrierException.class);
      assertThat(get(read)).isEqualTo("v");
      assertIsIncomplete(seen);
    }
  }

  /** Inside a MULTI nothing can be asked: what was not waited for before it is of a moment that is past. */
  @Test
  void aReadOfWhatWasNotKnownBeforeMultiFailsItsExec_SHIM_48() {
    plain.set("k", "v");
    StatefulRedisConnection<String, String> posts = posts();
    try (Reading seen = Antipode.reading(at(here()))) {
      posts.sync().multi();
      assertThat(seen.after()).isPresent();
    }
    plain.set("k", "w");
    try (Reading seen = Antipode.reading(at(here()))) {
      posts.async().get("k");
      RedisFuture<TransactionResult> exec = posts.async().exec();
      assertThatThrownBy(() -> get(exec)).rootCause().isInstanceOfSatisfying(BarrierUnprovenException.class, past -> {
        assertThat(past.code()).isEqualTo("AP514");
        assertThat(past.result().store(STORE).kind()).isEqualTo(UnprovenKind.OTHER);
      });
      assertThat(seen.after()).isPresent();
    }
  }

  /** The transaction is sent with its batch. */
  @Test
  void aTransactionOfABatchShowsWhatIsHeldWhenThatIsSent_SHIM_48() throws Exception {
    StatefulRedisConnection<String, String> there = AntipodeLettuce.wrap(
        client().connect(StringCodec.UTF8, RedisURI.create(servers.url("b2"))), options().waitOnRead(true));
    there.setAutoFlushCommands(false);
    for (int number = 0; number < 5; number++) {
      try (LineageScope scope = Antipode.scope()) {
        there.async().multi();
        there.async().get("k");
        RedisFuture<TransactionResult> exec = there.async().exec();
        at(here()).ids().forEach(scope::append);
        there.flushCommands();
        assertThatThrownBy(() -> get(exec)).hasStackTraceContaining("AP514");
      }
    }
  }

  /** Each that looks for something takes a step of the stack. */
  @Test
  void aBatchMayHaveThousandsOfReadings_BAR_51() throws Exception {
    plain.set("k", "v");
    StatefulRedisConnection<String, String> posts = posts();
    posts.setAutoFlushCommands(false);
    List<RedisFuture<String>> reads = new ArrayList<>();
    for (int number = 0; number < 20_000; number++) {
      try (Reading seen = Antipode.reading()) {
        reads.add(posts.async().get("k"));
        assertThat(seen.after()).isEmpty();
      }
    }
    posts.flushCommands();
    for (RedisFuture<String> each : reads) {
      assertThat(get(each)).isEqualTo("v");
    }
  }

  /** Lettuce gives nothing of what was queued then, but where it forgot the transaction just before; who knows. */
  @Test
  void whatWasQueuedBeforeTheErrorIsIncompleteWhereExecComesAfterIt_SHIM_13() throws Exception {
    StatefulRedisConnection<String, String> posts = without("multi");
    posts.setAutoFlushCommands(false);
    for (boolean executes : List.of(true, false)) {
      try (Reading seen = Antipode.reading()) {
        RedisFuture<String> multi = posts.async().multi();
        RedisFuture<String> read = posts.async().get("k");
        posts.flushCommands();
        assertThatThrownBy(() -> get(multi)).hasMessageContaining("NOPERM");
        RedisFuture<?> ended = end(posts, executes);
        posts.flushCommands();
        assertThatThrownBy(() -> get(ended)).hasMessageContaining("without MULTI");
        assertThat(read.isDone()).isFalse();
        assertIsIncomplete(seen);
      }
    }
  }

  /** As the application's thread may have seen it open, and another one ends it. */
  @Test
  void whatIsReadInATransactionThatIsOverHasEnded_SHIM_13() {
    RecordingConnection<String, String> posts = (RecordingConnection<String, String>) posts();
    LettuceTransaction<String, String> over = new LettuceTransaction<>(posts.binding(), posts.line(), null);
    over.dropped(true);
    try (Reading seen = Antipode.reading()) {
      over.reads();
      assertIsIncomplete(seen);
    }
    try (Reading seen = Antipode.reading(ahead())) {
      assertThatThrownBy(over::reads).isInstanceOf(BarrierException.class);
    }
  }
}
