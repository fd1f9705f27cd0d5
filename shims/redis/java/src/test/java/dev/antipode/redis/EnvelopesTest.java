package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Opaque;
import dev.antipode.Reading;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.shim.Envelope;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Rest mode envelope: string values with their lineages in one operation (SHIM-34 to SHIM-37). */
class EnvelopesTest extends WithClients {
  private static final Lineage OTHER = Lineage.of(WriteId.position("user-acl", "0123456789abcdef", 49));
  private static final byte[] BEGIN = {(byte) 0xF5, 'A', 'E'};

  private StoreOptions envelopes() {
    return options().rest(Rest.ENVELOPE).envelopeKeys("post:*");
  }

  private TestClient wrap() {
    return posts(envelopes());
  }

  private static byte[] octets(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  private byte[] stored(String key) {
    return plain.get(octets(key));
  }

  /** What rests with a stored value, which is this one. */
  private String beside(String key, String value) {
    Envelope.OpenedEnvelope opened = Envelope.open(stored(key));
    assertThat(opened.fault()).isEmpty();
    assertThat(opened.value()).isEqualTo(octets(value));
    return opened.text();
  }

  private static Object[] words(String text) {
    return text.split(" ");
  }

  @Test
  void valueAndLineageAreOneValueThatReadsAsItself_SHIM_9_SHIM_36() {
    TestClient posts = wrap();
    try (LineageScope scope = Antipode.scope(OTHER)) {
      assertThat(posts.call("SET", "post:1", "body")).isEqualTo("OK");
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      posts.call("SET", "other", "body");
    }
    assertThat(beside("post:1", "body")).isEqualTo(OTHER.serialize());
    assertThat(stored("other")).isEqualTo(octets("body"));
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.call("GET", "post:1")).isEqualTo("body");
      assertThat(posts.call("GET", "post:none")).isNull();
      assertThat(scope.lineage().isEmpty()).isTrue(); // SHIM-12
      posts.call("SET", "post:2", "body");
    }
    assertThat(stored("post:2")).as("no lineage, no envelope").isEqualTo(octets("body"));
  }

  @Test
  void everyCommandThatWritesWholeValues_SHIM_9() {
    TestClient posts = wrap();
    for (String command : List.of(
        "SETEX post:1 100 v", "PSETEX post:1 100000 v", "SETNX post:1 v", "SET post:1 v EX 100 NX", "set post:1 v",
        "MSET other v post:1 v", "MSETNX post:1 v other v", "GETSET post:1 v")) {
      plain.del("post:1", "other");
      try (LineageScope scope = Antipode.scope(OTHER)) {
        posts.call(words(command));
        assertThat(scope.lineage().ofStore(STORE)).as(command).hasSize(1);
        assertThat(scope.pending()).as(command).isEmpty();
      }
      assertThat(beside("post:1", "v")).as(command).isEqualTo(OTHER.serialize());
      assertThat(plain.get("other")).as(command).isIn(null, "v");
    }
    plain.del("post:1", "other");
    try (LineageScope scope = Antipode.scope(OTHER); TestClient.Batch batch = posts.batch()) {
      batch.add("SET", "other", "v").add("SET", "post:1", "v").send();
      // A pipeline of Jedis is one write; commands of Lettuce that are in flight together mark one another (SCOPE-16).
      String marked = kind == ClientKind.JEDIS ? "" : "~_.i." + STORE;
      assertThat(beside("post:1", "v")).isEqualTo(OTHER.serialize() + marked);
    }
    plain.del("post:1", "other");
    try (LineageScope scope = Antipode.scope(OTHER); TestClient.Transaction transaction = posts.transaction()) {
      transaction.multi();
      transaction.add("SET", "post:1", "v");
      transaction.add("SET", "other", "v");
      transaction.exec();
      assertThat(beside("post:1", "v")).isEqualTo(OTHER.serialize());
      assertThat(plain.get("other")).isEqualTo("v");
    }
  }

  @Test
  void everyCommandThatAnswersWithWholeValues_SHIM_13_SHIM_36() {
    TestClient posts = wrap();
    plain.set("other", "plain");
    Map<String, Object> reads = Map.of(
        "GET post:1", "body",
        "GETEX post:1 EX 100", "body",
        "GETDEL post:1", "body",
        "GETSET post:1 v", "body",
        "SET post:1 v GET", "body",
        "MGET other post:1 post:none", Arrays.asList("plain", "body", null));
    for (Map.Entry<String, Object> read : reads.entrySet()) {
      for (boolean collects : new boolean[] {false, true}) {
        for (String way : List.of("alone", "batch", "transaction")) {
          String name = read.getKey() + ", " + way;
          try (LineageScope scope = Antipode.scope(OTHER)) {
            posts.call("SET", "post:1", "body");
          }
          try (LineageScope scope = Antipode.scope()) {
            if (!collects) {
              assertThat(got(posts, way, words(read.getKey()))).as(name).isEqualTo(read.getValue());
            } else {
              try (Reading seen = Antipode.reading()) {
                assertThat(got(posts, way, words(read.getKey()))).as(name).isEqualTo(read.getValue());
                assertThat(OTHER.isCoveredBy(seen.lineage())).as(name).isTrue();
                assertThat(seen.lineage().stores()).as(name).contains(STORE);
                assertThat(seen.lineage().isComplete()).as(name).isTrue();
              }
            }
          }
        }
      }
    }
  }

  private static Object got(TestClient posts, String way, Object[] command) {
    switch (way) {
      case "batch" -> {
        try (TestClient.Batch batch = posts.batch()) {
          return batch.add("GET", "other").add(command).send().get(1);
        }
      }
      case "transaction" -> {
        try (TestClient.Transaction transaction = posts.transaction()) {
          transaction.multi();
          transaction.add("GET", "other");
          transaction.add(command);
          return transaction.exec().get(1);
        }
      }
      default -> {
        return posts.call(command);
      }
    }
  }

  @Test
  void automaticMerging() {
    TestClient posts = wrap();
    try (LineageScope scope = Antipode.scope(OTHER)) {
      posts.call("MSET", "post:1", "a", "post:2", "b");
    }
    Antipode.configure(Antipode.settings().autoMerge(true));
    for (String command : List.of("GET post:1", "GETDEL post:1")) {
      try (LineageScope scope = Antipode.scope()) {
        assertThat(posts.call(words(command))).isEqualTo("a");
        assertThat(OTHER.isCoveredBy(scope.lineage())).as(command).isTrue();
      }
    }
  }

  @Test
  void aBrokenEnvelopeLosesNoValue_SHIM_35() {
    TestClient posts = wrap();
    byte[][] broken = {
        BEGIN, octets("\u00f5AE2abc"), octets("\u00f5AE1\u00ff\u00ff1~a..e.1"), octets("\u00f5AE1\u0000")};
    for (byte[] each : broken) {
      plain.set(octets("post:1"), each);
      String text = new String(each, StandardCharsets.ISO_8859_1);
      try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
        assertThat(posts.call("GET", "post:1")).isEqualTo(text);
        assertThat(posts.call("MGET", "post:1")).isEqualTo(List.of(text));
        assertThat(seen.lineage().incomplete()).isEqualTo(Set.of(STORE));
      }
    }
    assertThat(logs.text()).contains("an envelope");
    plain.set(octets("post:1"), Envelope.close(octets("body"), "no lineage"));
    try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
      assertThat(posts.call("GET", "post:1")).isEqualTo("body"); // SHIM-14
      assertThat(seen.lineage().incomplete()).isEqualTo(Set.of(STORE));
    }
  }

  @Test
  void anyValueComesBack_SHIM_34() {
    TestClient posts = wrap();
    Random chance = new Random(5);
    List<byte[]> values = new ArrayList<>(List.of(BEGIN, Envelope.close(octets("x"), OTHER.serialize()), new byte[0]));
    for (int number = 0; number < 30; number++) {
      byte[] value = new byte[chance.nextInt(60)];
      chance.nextBytes(value);
      values.add(value);
      values.add(Envelope.close(value, "1~a..e.1"));
    }
    for (byte[] value : values) {
      for (Lineage lineage : List.of(OTHER, Lineage.EMPTY)) {
        try (LineageScope scope = Antipode.scope(lineage)) {
          posts.call("SET", "post:1", value);
          assertThat(octets((String) posts.call("GET", "post:1"))).isEqualTo(value);
        }
      }
    }
  }

  @Test
  void aLineagePastTheBudgetIsIncomplete_neverEmpty() {
    TestClient posts = wrap();
    List<WriteId> many = new ArrayList<>();
    for (int number = 0; number < 60; number++) {
      many.add(new WriteId("store-" + number, "k".repeat(80), new Opaque("m")));
    }
    try (LineageScope scope = Antipode.scope(Lineage.of(many))) {
      posts.call("SET", "post:1", "body");
    }
    assertThat(stored("post:1").length).isLessThan(1100);
    try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
      assertThat(posts.call("GET", "post:1")).isEqualTo("body");
      assertThat(seen.lineage().isComplete()).isFalse();
    }
  }

  @Test
  void whatWouldSeeTheOctetsInsideIsRefusedBeforeItIsSent_SHIM_36_SHIM_37() {
    TestClient posts = wrap();
    try (LineageScope scope = Antipode.scope(OTHER)) {
      posts.call("SET", "post:1", "7");
      byte[] before = stored("post:1");
      Lineage lineage = scope.lineage();
      for (String command : List.of(
          "APPEND post:1 x", "INCR post:1", "INCRBYFLOAT post:1 1.5", "SETRANGE post:1 1 x", "GETRANGE post:1 0 1",
          "STRLEN post:1", "SETBIT post:1 7 1", "BITCOUNT post:1", "BITOP AND other x post:1", "LCS x post:1",
          "RENAME post:1 other", "COPY post:1 other", "SET post:1 v IFEQ x", "append post:1 x")) {
        assertThatThrownBy(() -> posts.call(words(command)))
            .as(command)
            .isInstanceOf(ConfigurationException.class)
            .hasMessageContaining("post:1")
            .hasMessageContaining("envelopeKeys");
        assertThat(scope.pending()).as(command).isEmpty();
      }
      assertThat(stored("post:1")).isEqualTo(before);
      assertThat(scope.lineage()).isEqualTo(lineage);
    }
    assertThat(posts.call("APPEND", "other", "x")).isEqualTo(1L);
    assertThat(posts.call("RENAME", "post:1", "post:2")).isEqualTo("OK");
    assertThat(posts.call("GET", "post:2")).isEqualTo("7");
    assertThat(posts.call("DEL", "post:2")).isEqualTo(1L);
  }

  @Test
  void watchedReadsAreOpened() {
    TestClient posts = wrap();
    try (LineageScope scope = Antipode.scope(OTHER)) {
      posts.call("SET", "post:1", "body");
      for (int number = 0; number < 2; number++) {
        try (TestClient.Transaction transaction = posts.transaction()) {
          transaction.watch("post:1");
          Object body = transaction.call("GET", "post:1");
          transaction.multi();
          transaction.add("SET", "post:1", body + "!");
          assertThat(transaction.exec()).isNotNull();
        }
      }
    }
    assertThat(posts.call("GET", "post:1")).isEqualTo("body!!");
  }

  @Test
  void aReadThatWaits() {
    TestClient posts = wrap();
    TestClient reader = at("b1", envelopes().waitOnRead(true).timeout(Duration.ofSeconds(10)));
    for (int number = 0; number < 10; number++) {
      try (LineageScope scope = Antipode.scope(OTHER)) {
        posts.call("SET", "post:1", number);
        assertThat(reader.call("GET", "post:1")).isEqualTo(String.valueOf(number));
      }
    }
  }

  @Test
  void offOpensEnvelopesAllTheSame_SHIM_36() {
    TestClient posts = wrap();
    try (LineageScope scope = Antipode.scope(OTHER)) {
      posts.call("SET", "post:1", "body");
    }
    Antipode.configure(Antipode.settings().mode(Mode.OFF));
    String looksLikeOne = new String(BEGIN, StandardCharsets.ISO_8859_1);
    try (LineageScope scope = Antipode.scope(OTHER)) {
      assertThat(posts.call("GET", "post:1")).isEqualTo("body");
      assertThat(posts.call("MGET", "post:1")).isEqualTo(List.of("body"));
      try (TestClient.Batch batch = posts.batch()) {
        assertThat(batch.add("GET", "post:1").add("SET", "post:3", BEGIN).send()).isEqualTo(List.of("body", "OK"));
      }
      assertThat(posts.call("GETSET", "post:1", "new")).isEqualTo("body");
      assertThat(stored("post:1")).isEqualTo(octets("new"));
      posts.call("SET", "post:2", BEGIN);
      assertThat(posts.call("MGET", "post:2", "post:3")).isEqualTo(List.of(looksLikeOne, looksLikeOne));
      assertThatThrownBy(() -> posts.call("APPEND", "post:1", "x")).isInstanceOf(ConfigurationException.class);
    }
  }

  @Test
  void lineagesMayBeKeptOutAndIn() {
    TestClient silent = posts(envelopes().lineageOut(false));
    TestClient deaf = posts(envelopes().lineageIn(false));
    try (LineageScope scope = Antipode.scope(OTHER)) {
      silent.call("SET", "post:1", "v");
      assertThat(stored("post:1")).isEqualTo(octets("v"));
      deaf.call("SET", "post:1", "v");
    }
    try (LineageScope scope = Antipode.scope(); Reading seen = Antipode.reading()) {
      assertThat(deaf.call("GET", "post:1")).isEqualTo("v");
      assertThat(seen.lineage().stores()).containsExactly(STORE);
      assertThat(seen.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void errorsAreTheStoresOwn_SHIM_2() {
    TestClient posts = wrap();
    plain.lpush("post:list", "x");
    try (LineageScope scope = Antipode.scope(OTHER)) {
      for (String command : List.of("GET post:list", "GETSET post:list v")) {
        assertThatThrownBy(() -> posts.call(words(command)))
            .isInstanceOf(posts.serverError())
            .hasMessageContaining("WRONGTYPE");
      }
      assertThatThrownBy(() -> posts.call("SET", "post:1")).hasMessageContaining("wrong number");
      assertThat(scope.pending()).isEmpty();
    }
  }

  @Test
  void wrapsOfOneStoreAgreeOnTheKeys_SHIM_37() {
    AntipodeRedis.register(StoreOptions.named(STORE).replicas(servers.url("b1"))); // who only waits has no say
    wrap();
    wrap();
    assertThatThrownBy(() -> posts(envelopes().envelopeKeys("user:*")))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("the same envelopeKeys");
    assertThatThrownBy(this::posts).isInstanceOf(ConfigurationException.class);
    assertThatThrownBy(() -> posts(StoreOptions.named("x").rest(Rest.ENVELOPE)))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("go together");
  }
}
