package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.LineageScope;
import dev.antipode.Rest;
import dev.antipode.internal.diagnostics.history.Recorder;
import dev.antipode.lab.HistoryCheck;
import dev.antipode.lab.HistoryLines;
import dev.antipode.lab.Repository;
import dev.antipode.propagation.Messages;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Recorded histories of Redis: what commands change and read, and what a replica that lags makes of it (HIST-23 to HIST-31). */
class HistoryTest extends WithClients {
  private static final String SERVER = "b2";
  private static final int POSTS = 3;

  @TempDir
  Path temporary;

  private Path history;

  @BeforeEach
  void record() {
    RedisServers.until(() -> servers.client(SERVER).dbSize() <= 1, "the replica has nothing but marks");
    history = temporary.resolve("history");
    Antipode.configure(Antipode.settings().history(history.toString()));
  }

  private List<JsonNode> lines(String kind) {
    Recorder.forget();
    return HistoryLines.of(history, kind);
  }

  /** Returns what a line says of a key, in a word: {@code k=there}, {@code k=null}, {@code k=?}. */
  private static String told(JsonNode line) {
    if (line.has("any_key") || line.has("nothing")) {
      return line.has("any_key") ? "any" : "nothing";
    }
    assertThat(line.path("value").isTextual()).as("a digest").isFalse();
    String value = line.has("there") ? "there" : line.has("value") ? "null" : "?";
    return line.get("key").asText() + "=" + value + (line.has("expires") ? " expires" : "");
  }

  private HistoryCheck checked() {
    Recorder.forget();
    return HistoryCheck.of(history);
  }

  // The story

  private static void beside(boolean waits, Runnable work) {
    if (!waits) {
      servers.lab().partition("redis", SERVER);
    }
    try {
      work.run();
    } finally {
      servers.lab().heal("redis", SERVER);
    }
  }

  /** HIST-37: the command finds each read that found nothing; of what the others saw it cannot tell. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theStoryWithAndWithoutABarrier(boolean waits) {
    TestClient writer = posts();
    TestClient reader = at(SERVER, options());
    int[] inconsistent = {0};
    beside(waits, () -> {
      for (int number = 0; number < POSTS; number++) {
        String text;
        try (LineageScope scope = Antipode.scope()) {
          writer.call("SET", "post:" + number, "body " + number);
          text = Messages.outgoing(null);
        }
        try (LineageScope message = Antipode.messageScope(text)) {
          if (waits) {
            Antipode.barrier(BarrierOptions.defaults());
          }
          inconsistent[0] += reader.call("GET", "post:" + number) == null ? 1 : 0;
        }
      }
    });
    assertThat(inconsistent[0]).isEqualTo(waits ? 0 : POSTS);
    HistoryCheck check = checked();
    assertThat(check.exit()).as(check.text()).isEqualTo(waits ? 2 : 1);
    assertThat(check.violations()).as(check.text()).isEqualTo(inconsistent[0]);
  }

  /** HIST-30, HIST-32: a reader in Python, of what Java wrote, and one history of both. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void pythonReadsWhatJavaWrote(boolean waits) {
    TestClient writer = posts();
    String[] arguments = new String[POSTS + 3];
    arguments[0] = history.toString();
    arguments[1] = servers.url(SERVER);
    arguments[2] = waits ? "waits" : "";
    String[] said = {""};
    beside(waits, () -> {
      for (int number = 0; number < POSTS; number++) {
        try (LineageScope scope = Antipode.scope()) {
          writer.call("SET", "post:" + number, "body " + number);
          arguments[number + 3] = Messages.outgoing(null);
        }
      }
      said[0] = Repository.runPython(
          """
          import sys, antipode, antipode_redis, redis
          from antipode import recorder
          _, history, url, waits, *texts = sys.argv
          antipode.configure(history=history)
          reader = antipode_redis.wrap(redis.Redis.from_url(url), store="posts")
          missed = 0
          for number, text in enumerate(texts):
              with antipode.message_scope(text):
                  if waits:
                      antipode.barrier(timeout=20)
                  missed += reader.get(f"post:{number}") is None
          recorder.end()
          print(missed)
          """,
          arguments);
    });
    assertThat(said[0]).isEqualTo(waits ? "0" : Integer.toString(POSTS));
    HistoryCheck check = checked();
    assertThat(check.exit()).as(check.text()).isEqualTo(waits ? 2 : 1);
    assertThat(check.violations()).as(check.text()).isEqualTo(waits ? 0 : POSTS);
  }

  // Commands

  /** HIST-28, HIST-37: that the key holds something, or nothing; and every line of a write has its position. */
  @Test
  void whatWritesChanged() {
    plain.set("old", "old");
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      posts.call("SET", "k", "v");
      assertThat(scope.lineage().isEmpty()).isFalse();
      posts.call("SET", "k", "w", "EX", "60");
      posts.call("SETEX", "k", "60", "x");
      posts.call("SET", "old", "v", "NX");
      posts.call("SETNX", "old", "v");
      posts.call("SET", "new", "v", "NX", "GET");
      posts.call("MSET", "k", "v", "l", "w");
      posts.call("INCR", "n");
      posts.call("HSET", "h", "f", "v");
      posts.call("EXPIRE", "old", "60");
      posts.call("PERSIST", "old");
      posts.call("GETDEL", "old");
      posts.call("DEL", "none");
      posts.call("DEL", "k", "l");
      posts.call("RENAME", "n", "m");
      posts.call("EVAL", "redis.call('set', KEYS[1], 'v')", "1", "k");
    }
    List<JsonNode> writes = lines("write");
    assertThat(writes.stream().map(HistoryTest::told)).containsExactly(
        "k=there",
        "k=there expires",
        "k=there expires",
        "nothing",
        "nothing",
        "new=?",
        "k=there",
        "l=there",
        "n=there",
        "h=?",
        "old=?",
        "nothing",
        "old=null",
        "nothing",
        "k=null",
        "l=null",
        "any",
        "any");
    assertThat(writes).allMatch(line -> line.get("identifier").asText().startsWith("1~posts.."));
  }

  /** HIST-37: that nothing was found; of the rest that nobody knows. */
  @Test
  void whatReadsSaw() {
    plain.set("k", "v");
    plain.hset("h", "f", "v");
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.call("GET", "k")).isEqualTo("v");
      posts.call("MGET", "k", "no");
      posts.call("EXISTS", "no");
      posts.call("EXISTS", "k");
      posts.call("STRLEN", "k");
      posts.call("HGETALL", "h");
      posts.call("DBSIZE");
      assertThatThrownBy(() -> posts.call("GET", "h")).isInstanceOf(posts.serverError());
    }
    posts.call("GET", "k"); // outside any scope
    List<JsonNode> reads = lines("read");
    assertThat(reads.stream().map(HistoryTest::told))
        .containsExactly("k=?", "k=?", "no=null", "no=null", "k=?", "k=?", "h=?", "=?");
    assertThat(reads).allMatch(line -> line.has("value") || line.get("reads_from").asText().equals("unattributed"));
  }

  /** HIST-28: a batch is one write, with a line each, and its reads. */
  @Test
  void batches() {
    plain.set("old", "old");
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope(); TestClient.Batch batch = posts.batch()) {
      batch.add("SET", "k", "v").add("GET", "old").add("INCR", "n").add("GET", "none").add("SETNX", "old", "v").send();
    }
    // Jedis has one question a batch, and Lettuce a command each.
    assertThat(lines("write").stream().map(HistoryTest::told).filter(told -> !told.equals("nothing")))
        .containsExactly("k=there", "n=there");
    assertThat(lines("read").stream().map(HistoryTest::told)).containsExactly("old=?", "none=null");
  }

  /** The same of a transaction; of one with a script nobody knows what it changed. */
  @Test
  void transactions() {
    plain.set("old", "old");
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope(); TestClient.Transaction transaction = posts.transaction()) {
      transaction.watch("old");
      transaction.call("GET", "old");
      transaction.multi();
      transaction.add("SET", "k", "v");
      transaction.add("GET", "none");
      transaction.add("SETNX", "old", "v");
      transaction.add("INCR", "n");
      transaction.exec();
      transaction.multi();
      transaction.add("SET", "k", "w");
      transaction.add("EVAL", "return 1", "0");
      transaction.exec();
    }
    assertThat(lines("write").stream().map(HistoryTest::told))
        .containsExactly("k=there", "n=there", "any");
    assertThat(lines("read").stream().map(HistoryTest::told)).containsExactly("old=?", "none=null");
  }

  /** HIST-28: a read that is merged has the position that goes into lineages. */
  @Test
  void readsThatMergeCoverAPosition() {
    Antipode.configure(Antipode.settings().autoMerge(true));
    TestClient posts = posts();
    try (LineageScope scope = Antipode.scope()) {
      posts.call("SET", "k", "v");
    }
    plain.set("unrecorded", "moves the position");
    String text;
    try (LineageScope scope = Antipode.scope()) {
      posts.call("GET", "k");
      text = Messages.outgoing(null);
    }
    try (LineageScope message = Antipode.messageScope(text)) {
      posts.call("GET", "k");
    }
    assertThat(lines("read")).hasSize(2).allMatch(line -> line.has("covers"));
    HistoryCheck check = HistoryCheck.of(history);
    assertThat(check.exit()).as(check.text()).isEqualTo(2); // of what they saw nobody knows
  }

  /** HIST-27. */
  @Test
  void aWriteThatWasRefusedIsNone() {
    TestClient replica = at("b1", options());
    try (LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> replica.call("SET", "k", "v")).isInstanceOf(replica.serverError());
    }
    assertThat(lines("write")).isEmpty();
    assertThat(lines("gap")).isEmpty();
  }

  /** HIST-28: envelopes are none of the values. */
  @Test
  void valuesInEnvelopes() {
    var envelopes = options().rest(Rest.ENVELOPE).envelopeKeys("post:*");
    TestClient posts = posts(envelopes);
    try (LineageScope scope = Antipode.scope()) {
      posts.call("SET", "post:1", "v");
      assertThat(posts.call("GET", "post:1")).isEqualTo("v");
    }
    assertThat(lines("write").stream().map(HistoryTest::told)).containsExactly("post:1=there");
    assertThat(lines("read").stream().map(HistoryTest::told)).containsExactly("post:1=?");
  }
}
