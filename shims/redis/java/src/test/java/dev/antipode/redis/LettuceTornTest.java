package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.shim.PendingWrite;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A transaction that the server ended before Lettuce did, by RESET or with its connection: what follows is executed by itself,
 * until a second MULTI, which the server takes then.
 */
class LettuceTornTest extends WithLettuce {
  /** How the server's transaction ends. */
  enum Tearing {
    RESET, RESET_PLAIN, CONNECTION
  }

  private CuttingProxy proxy;

  private record Word(String text) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return text.getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public String toString() {
      return text;
    }
  }

  private void tear(Tearing by, StatefulRedisConnection<String, String> posts) {
    Command<String, String, String> reset = new Command<>(new Word("RESET"), new StatusOutput<>(StringCodec.UTF8));
    switch (by) {
      case RESET -> posts.dispatch(new AsyncCommand<>(reset));
      case RESET_PLAIN -> posts.dispatch(reset);
      default -> proxy.cutAll();
    }
  }

  /** A connection with a transaction that was torn, in which {@code k} was then set to {@code alone}. */
  private StatefulRedisConnection<String, String> torn(Tearing by) {
    plain.del("k");
    StatefulRedisConnection<String, String> posts = through(proxy);
    posts.sync().multi();
    tear(by, posts);
    posts.async().set("k", "alone");
    RedisServers.until(() -> "alone".equals(plain.get("k")), "it is executed by itself");
    return posts;
  }

  private static void assertIsUnknown(LineageScope scope) {
    assertThat(scope.pending()).isNotEmpty().allMatch(PendingWrite::isUnknown);
    assertThat(scope.outgoing().isComplete()).isFalse();
  }

  @ParameterizedTest
  @EnumSource
  void aSecondMultiThatIsDiscardedDiscardsNothingBeforeIt_SCOPE_17(Tearing by) throws Exception {
    try (CuttingProxy own = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      proxy = own;
      StatefulRedisConnection<String, String> posts = torn(by);
      assertThat(get(posts.async().multi())).isEqualTo("OK");
      assertThat(get(posts.async().discard())).isEqualTo("OK");
      assertThat(plain.get("k")).isEqualTo("alone");
      assertIsUnknown(scope);
    }
  }

  @ParameterizedTest
  @EnumSource
  void aSecondMultiThatDoesNothingUndoesNothingBeforeIt_SCOPE_17(Tearing by) throws Exception {
    try (CuttingProxy own = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      proxy = own;
      StatefulRedisConnection<String, String> posts = torn(by);
      posts.async().watch("k");
      assertThat(get(posts.async().multi())).isEqualTo("OK");
      plain.set("k", "other");
      posts.async().set("k", "alone");
      TransactionResult done = get(posts.async().exec());
      assertThat(done.wasDiscarded()).isTrue();
      assertIsUnknown(scope);
    }
  }

  /** Its server may be another one than that which executed what was before. */
  @ParameterizedTest
  @EnumSource
  void aSecondMultiThatIsExecutedCoversNothingBeforeIt_SCOPE_17(Tearing by) throws Exception {
    try (CuttingProxy own = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      proxy = own;
      StatefulRedisConnection<String, String> posts = torn(by);
      assertThat(get(posts.async().multi())).isEqualTo("OK");
      posts.async().set("k", "second");
      get(posts.async().exec());
      assertThat(plain.get("k")).isEqualTo("second");
      assertIsUnknown(scope);
    }
  }

  @ParameterizedTest
  @EnumSource
  void whatIsExecutedByItselfIsUnknownWhereTheConnectionIsClosed_SCOPE_17(Tearing by) {
    try (CuttingProxy own = new CuttingProxy(servers.servers().get("a").port());
        LineageScope scope = Antipode.scope()) {
      proxy = own;
      torn(by).close();
      assertIsUnknown(scope);
    }
  }

  @ParameterizedTest
  @EnumSource
  void whatIsReadBeforeASecondMultiIsIncomplete_SHIM_13(Tearing by) throws Exception {
    for (boolean executes : new boolean[] {true, false}) {
      try (CuttingProxy own = new CuttingProxy(servers.servers().get("a").port());
          Reading seen = Antipode.reading()) {
        proxy = own;
        StatefulRedisConnection<String, String> posts = torn(by);
        posts.async().get("k");
        get(posts.async().multi());
        RedisFuture<?> ended = executes ? posts.async().exec() : posts.async().discard();
        get(ended);
        assertThat(seen.lineage().isComplete()).isFalse();
        assertThat(seen.lineage().ofStore(STORE)).isEmpty();
      }
    }
  }

  /** A pool may reset a connection before it gives it to the next request. */
  @Test
  void aWriteBehindResetBelongsToItsOwnScope_SCOPE_17() {
    StatefulRedisConnection<String, String> posts = posts();
    try (LineageScope first = Antipode.scope()) {
      posts.sync().multi();
      posts.sync().set("k", "queued");
      tear(Tearing.RESET, posts);
    }
    try (LineageScope second = Antipode.scope()) {
      posts.async().set("k", "alone");
      RedisServers.until(() -> "alone".equals(plain.get("k")), "it is executed by itself");
      assertIsUnknown(second);
    }
  }

  @Test
  void aResetOutsideATransactionEndsNothing_SHIM_6() throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      tear(Tearing.RESET, posts);
      assertThat(posts.sync().set("k", "v")).isEqualTo("OK");
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      assertThat(scope.outgoing().isComplete()).isTrue();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aSecondMultiThatIsRefusedLeavesTheTransactionAsItIs_SHIM_11(boolean executes) throws Exception {
    StatefulRedisConnection<String, String> posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      posts.sync().multi();
      posts.async().set("k", "v");
      assertThatThrownBy(() -> get(posts.async().multi())).hasMessageContaining("nested");
      assertThat(scope.pending()).hasSize(1).noneMatch(PendingWrite::isUnknown);
      if (executes) {
        posts.sync().exec();
      } else {
        posts.sync().discard();
      }
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(executes ? 1 : 0);
      assertThat(scope.outgoing().isComplete()).isTrue();
    }
  }
}
