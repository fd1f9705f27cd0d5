package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Rest mode field: a hash's lineage in a field of its own (SHIM-9, SHIM-13, SHIM-14). */
class FieldTest extends WithClients {
  private static final WriteId OTHER = WriteId.position("other", "e1", 7);

  private StoreOptions field() {
    return options().rest(Rest.FIELD);
  }

  private static List<?> list(Object reply) {
    return (List<?>) reply;
  }

  @Test
  void aLineageRestsInAFieldOfItsHash_SHIM_9() {
    TestClient posts = posts(field());
    try (LineageScope scope = Antipode.scope(Lineage.of(OTHER))) {
      assertThat(posts.call("HSET", "h", "a", "1", "b", "2")).isEqualTo(2L);
      assertThat(plain.hget("h", "antipode")).isEqualTo("1~other..e1.7");
      assertThat(posts.call("HINCRBY", "h", "n", "3")).isEqualTo(3L);
      assertThat(plain.hget("h", "antipode")).startsWith("1~other..e1.7~posts..");
    }
    assertThat(list(posts.call("HGETALL", "h"))).hasToString("[a, 1, b, 2, n, 3]");
    assertThat(list(posts.call("HKEYS", "h"))).hasToString("[a, b, n]");
    assertThat(list(posts.call("HVALS", "h"))).hasToString("[1, 2, 3]");
    assertThat(posts.call("HLEN", "h")).isEqualTo(3L);
    assertThat(list(posts.call("HSCAN", "h", "0")).get(1)).hasToString("[a, 1, b, 2, n, 3]");
    try (Reading seen = Antipode.reading()) {
      assertThat(posts.call("HGET", "h", "a")).isEqualTo("1");
      assertThat(seen.lineage().covers(OTHER)).isTrue();
      assertThat(seen.lineage().isComplete()).isTrue();
    }
    try (Reading seen = Antipode.reading(); TestClient.Batch batch = posts.batch()) {
      assertThat(batch.add("HGETALL", "h").send().get(0)).hasToString("[a, 1, b, 2, n, 3]");
      assertThat(seen.lineage().covers(OTHER)).isTrue();
      assertThat(seen.lineage().isComplete()).isTrue();
    }
    try (Reading seen = Antipode.reading(); TestClient.Batch batch = posts.batch()) {
      assertThat(batch.add("HGET", "h", "a").send()).isEqualTo(List.of("1"));
      assertThat(seen.lineage().isComplete()).isFalse(); // what rests beside it was not read
    }
  }

  @Test
  void aHashIsWrittenByManyScopes_andBeginsAnewWhenDeleted() {
    TestClient posts = posts(field());
    for (int number = 1; number <= 2; number++) {
      try (LineageScope scope = Antipode.scope(Lineage.of(WriteId.position("other" + number, "e1", 7)))) {
        posts.call("HSET", "h", "f" + number, "v");
      }
    }
    assertThat(plain.hget("h", "antipode")).isEqualTo("1~other1..e1.7~other2..e1.7");
    try (LineageScope scope = Antipode.scope()) {
      assertThat(posts.call("HDEL", "h", "f1", "f2")).isEqualTo(2L);
    }
    assertThat(plain.exists("h")).isFalse();
  }

  @Test
  void whatWasWrittenWithoutAntipodeReadsAsEmpty_brokenAsIncomplete_SHIM_14() {
    TestClient posts = posts(field());
    plain.hset("h", "a", "1");
    try (Reading seen = Antipode.reading()) {
      assertThat(posts.call("HGET", "h", "a")).isEqualTo("1");
      assertThat(seen.lineage().isComplete()).isTrue();
    }
    plain.hset("h", "antipode", "nonsense");
    try (Reading seen = Antipode.reading()) {
      assertThat(posts.call("HGET", "h", "a")).isEqualTo("1");
      assertThat(seen.lineage().isComplete()).isFalse();
    }
  }

  @Test
  void transactionsKeepLineagesToo() {
    TestClient posts = posts(field());
    try (LineageScope scope = Antipode.scope(Lineage.of(OTHER));
        TestClient.Transaction transaction = posts.transaction()) {
      transaction.multi();
      transaction.add("HSET", "h", "a", "1");
      transaction.add("HGETALL", "h");
      assertThat(transaction.exec()).isEqualTo(List.of(1L, List.of("a", "1")));
    }
    assertThat(plain.hget("h", "antipode")).isEqualTo("1~other..e1.7");
  }
}
