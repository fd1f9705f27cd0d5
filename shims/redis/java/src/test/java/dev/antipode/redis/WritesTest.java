package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.WriteId;
import dev.antipode.shim.PendingWrite;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a wrapped client's writes leave in the scope (SHIM-1, SHIM-2, SHIM-6 to SHIM-8, SHIM-11; EPOCH-1 to EPOCH-5). */
class WritesTest extends WithClients {
  private static List<WriteId> ids(LineageScope scope) {
    return scope.lineage().ofStore(STORE);
  }

  @Test
  void aWriteGetsItsPositionInItsOwnPacket_SHIM_7() {
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      long before = calls("info");
      assertThat(posts.call("SET", "k", "v")).isEqualTo("OK");
      assertThat(ids(scope)).hasSize(1);
      Ordered version = (Ordered) ids(scope).get(0).version();
      assertThat(ids(scope).get(0).isPosition()).isTrue();
      assertThat(version.epoch()).isEqualTo(here().position().epoch());
      assertThat(version.compareCounter(here().position().counter())).isLessThanOrEqualTo(0);
      assertThat(scope.lineage().isComplete()).isTrue();
      // The question, our own two looks at it, and the marker's.
      assertThat(calls("info") - before).isGreaterThanOrEqualTo(3);
      assertThat(plain.get("k")).isEqualTo("v");
    }
  }

  @Test
  void thePlainClientStaysPlain_SHIM_1() {
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      plain.set("k", "v");
      assertThat(ids(scope)).isEmpty();
      assertThat(posts.call("GET", "k")).isEqualTo("v"); // and reads add nothing (SHIM-12)
      assertThat(ids(scope)).isEmpty();
    }
  }

  @Test
  void deletesExpiryScriptsAndBlockingCommandsAreWrites_SHIM_6() {
    TestClient posts = posts();
    Object[][] writes = {
        {"LPUSH", "l", "x", "y"},
        {"EXPIRE", "l", "100"},
        {"INCRBYFLOAT", "f", "0.5"},
        {"EVAL", "return redis.call('SET', KEYS[1], 'v')", "1", "s"},
        {"BLPOP", "l", "1"},
        {"SORT", "l", "ALPHA", "STORE", "sorted"},
        {"DEL", "l"}
    };
    for (Object[] write : writes) {
      try (LineageScope scope = Antipode.scope()) {
        posts.call(write);
        assertThat(ids(scope)).as("%s", write[0]).hasSize(1);
        assertThat(scope.pending()).isEmpty();
      }
    }
    try (LineageScope scope = Antipode.scope()) {
      posts.call("SORT", "sorted", "ALPHA");
      posts.call("PUBLISH", "channel", "message");
      assertThat(posts.call("PING")).isEqualTo("PONG");
      assertThat(scope.lineage().isEmpty()).isTrue();
    }
  }

  @Test
  void aWriteThatChangedNothingIsCoveredToo_LIN_29() {
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.call("DEL", "never")).isEqualTo(0L);
      assertThat(ids(scope)).hasSize(1);
    }
  }

  @Test
  void aRefusedWriteLeavesNothing_SCOPE_17() {
    TestClient posts = posts();
    plain.set("text", "v");
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> posts.call("LPUSH", "text", "x"))
          .isInstanceOf(posts.serverError())
          .hasMessageContaining("WRONGTYPE");
      assertThat(ids(scope)).isEmpty();
      assertThat(scope.pending()).isEmpty();
      assertThat(posts.call("SET", "k", "v")).isEqualTo("OK"); // the connection is in step
    }
  }

  @Test
  void whatAScriptWroteBeforeItsErrorIsCovered() {
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      String script = "redis.call('SET', KEYS[1], 'v') return redis.error_reply('OOPS no')";
      assertThatThrownBy(() -> posts.call("EVAL", script, "1", "k")).isInstanceOf(posts.serverError());
      assertThat(ids(scope)).hasSize(1);
    }
  }

  @Test
  void aPipelineAsksOnce() {
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      long before = calls("info");
      try (TestClient.Batch batch = posts.batch()) {
        for (int number = 0; number < 50; number++) {
          batch.add("SET", "k" + number, "v");
        }
        batch.add("INCR", "n");
        assertThat(scope.pendingStores()).containsExactly(STORE);
        assertThat(batch.send()).hasSize(51).last().isEqualTo(1L);
        assertThat(scope.pending()).isEmpty();
      }
      assertThat(ids(scope)).hasSize(1);
      assertThat(calls("info") - before).isLessThan(15); // one for 51 writes; some of the marker and of ours
      assertThat(((Ordered) ids(scope).get(0).version()).compareCounter(here().position().counter())).isLessThanOrEqualTo(0);
    }
  }

  @Test
  void aPipelineWithErrorsIsCovered_oneOfErrorsAloneLeavesNothing() {
    TestClient posts = posts();
    plain.set("text", "v");
    try (LineageScope scope = Antipode.scope(); TestClient.Batch batch = posts.batch()) {
      assertThat(batch.add("LPUSH", "text", "x").send().get(0)).isInstanceOf(posts.serverError());
      assertThat(ids(scope)).isEmpty();
      assertThat(batch.add("LPUSH", "text", "x").add("SET", "k", "v").send()).hasSize(2).contains("OK");
      assertThat(ids(scope)).hasSize(1);
      assertThat(scope.pending()).isEmpty();
    }
  }

  @Test
  void aTransactionHasItsPositionBehindExec_SHIM_11() {
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      try (TestClient.Transaction transaction = posts.transaction()) {
        transaction.multi();
        transaction.add("SET", "k", "v");
        transaction.add("INCR", "n");
        assertThat(scope.pendingStores()).containsExactly(STORE);
        assertThat(transaction.exec()).containsExactly("OK", 1L);
      }
      assertThat(scope.pending()).isEmpty();
      assertThat(ids(scope)).hasSize(1);
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(((Ordered) ids(scope).get(0).version()).compareCounter(here().position().counter())).isLessThanOrEqualTo(0);
    }
  }

  @Test
  void anAbortedTransactionLeavesNothing_SHIM_11() {
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      try (TestClient.Transaction transaction = posts.transaction()) {
        transaction.multi();
        transaction.add("SET", "k", "v");
        transaction.discard();
      }
      assertThat(scope.pending()).isEmpty();
      try (TestClient.Transaction transaction = posts.transaction()) {
        transaction.multi();
        transaction.add("SET", "k", "v"); // closed without EXEC
      }
      assertThat(scope.pending()).isEmpty();
      try (TestClient.Transaction transaction = posts.transaction()) {
        transaction.watch("k");
        assertThat(transaction.call("GET", "k")).isNull();
        plain.set("k", "changed");
        transaction.multi();
        transaction.add("SET", "k", "v");
        assertThat(transaction.exec()).isNull();
      }
      assertThat(scope.pending()).isEmpty();
      try (TestClient.Transaction transaction = posts.transaction()) {
        transaction.multi();
        transaction.add("SET", "k", "v");
        transaction.add("NOSUCH", "word");
        assertThatThrownBy(transaction::exec).hasMessageContaining("EXECABORT");
      }
      assertThat(ids(scope)).isEmpty();
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void anUnknownOutcomeStaysPending_SCOPE_17() {
    TestClient posts = hasty();
    posts.call("SET", "k", "v");
    try (LineageScope scope = Antipode.scope()) {
      servers.lab().freeze("redis", "a");
      try {
        if (kind == ClientKind.JEDIS || kind == ClientKind.LETTUCE) {
          assertThatThrownBy(() -> posts.call("SET", "k", "w")).isInstanceOf(posts.noReply());
        } else { // futures have no time of their own
          // One that was given up before its turn was never sent, and is not pending: then another is.
          RedisServers.until(() -> {
            if (scope.pending().isEmpty()) {
              ((LettuceTestClient) posts).cancelled("SET", "k", "w");
            }
            return scope.pending().stream().anyMatch(PendingWrite::isUnknown);
          }, "a write that was sent to be given up");
        }
      } finally {
        servers.lab().thaw("redis", "a");
      }
      assertThat(scope.pending()).hasSize(1);
      assertThat(scope.pending().get(0).isUnknown()).isTrue();
      assertThat(scope.outgoing().isComplete()).isFalse();
    }
  }

  @Test
  void whereNothingCouldBeSentNothingIsPending() {
    TestClient posts = posts();
    posts.close();
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> posts.call("SET", "k", "v")).isInstanceOf(RuntimeException.class);
      assertThat(scope.pending()).isEmpty();
    }
  }

  @Test
  void inModeOffNothingIsRecorded_CONF() {
    TestClient posts = posts(options().mode(Mode.OFF));
    try (LineageScope scope = Antipode.scope()) {
      posts.call("SET", "k", "v");
      try (TestClient.Batch batch = posts.batch()) {
        batch.add("SET", "k", "v").send();
      }
      assertThat(ids(scope)).isEmpty();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void atAReplicaWritesFailAsEver() {
    TestClient posts = at("b1", options());
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> posts.call("SET", "k", "v")).hasMessageContaining("READONLY");
      assertThat(posts.call("EVAL", "return 7", "0")).isEqualTo(7L); // a script that only reads
      assertThat(ids(scope)).isEmpty();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  private static void assertPending(LineageScope scope) {
    assertThat(scope.pendingStores()).containsExactly(STORE);
    assertThat(scope.lineage().isComplete()).isFalse();
  }

  private static void assertWritten(LineageScope scope) {
    assertThat(ids(scope)).hasSize(1);
    assertThat(scope.pending()).isEmpty();
    assertThat(scope.lineage().isComplete()).isTrue();
  }

  @Test
  void eachScopeOfABatchHasItsWrite_SCOPE_24() {
    TestClient posts = posts();
    try (TestClient.Batch batch = posts.batch()) {
      batch.add("SET", "nobody's", "v");
      try (LineageScope outer = Antipode.scope()) {
        batch.add("SET", "outer", "v");
        try (LineageScope inner = Antipode.scope()) {
          batch.add("SET", "inner", "v");
          assertPending(inner);
          batch.send();
          assertWritten(inner);
        }
        assertWritten(outer);
      }
    }
  }

  @Test
  void eachScopeOfATransactionHasItsWrite_SCOPE_24() {
    TestClient posts = posts();
    for (boolean happens : List.of(true, false)) {
      try (TestClient.Transaction transaction = posts.transaction()) {
        transaction.multi();
        transaction.add("SET", "nobody's", "v");
        try (LineageScope outer = Antipode.scope()) {
          transaction.add("SET", "outer", "v");
          try (LineageScope inner = Antipode.scope()) {
            transaction.add("SET", "inner", "v");
            assertPending(inner);
            assertPending(outer);
            if (happens) {
              transaction.exec();
              assertWritten(inner);
              assertWritten(outer);
            } else {
              transaction.discard();
              assertThat(List.of(inner, outer)).allSatisfy(scope -> {
                assertThat(scope.pending()).isEmpty();
                assertThat(scope.lineage().isEmpty()).isTrue();
              });
            }
          }
        }
      }
    }
  }

  /** The scopes that queued have ended by then. */
  @Test
  void whoExecutesWhatOthersQueuedHasItsWrite_SCOPE_24() {
    TestClient posts = posts();
    try (TestClient.Batch batch = posts.batch()) {
      try (LineageScope queueing = Antipode.scope()) {
        batch.add("SET", "k", "v");
      }
      try (LineageScope executing = Antipode.scope()) {
        assertThat(executing.lineage().isComplete()).isTrue();
        batch.send();
        assertWritten(executing);
      }
      batch.add("GET", "k");
      try (LineageScope reading = Antipode.scope()) {
        batch.send();
        assertThat(reading.lineage().isEmpty()).as("SCOPE-15").isTrue();
      }
    }
    for (boolean happens : List.of(true, false)) {
      try (TestClient.Transaction transaction = posts.transaction()) {
        try (LineageScope queueing = Antipode.scope()) {
          transaction.multi();
          transaction.add("SET", "k", "v");
        }
        try (LineageScope executing = Antipode.scope()) {
          if (happens) {
            transaction.exec();
            assertWritten(executing);
          } else {
            transaction.discard();
            assertThat(executing.lineage().isEmpty() && executing.lineage().isComplete()).isTrue();
          }
        }
      }
    }
  }
}
