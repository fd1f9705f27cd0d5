package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.lab.Repository;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.UnifiedJedis;

/** Python and Java share one store: positions, marks and lineages at rest are the same in both (EPOCH-16, SHIM-9, SHIM-34). */
class PythonTest extends WithServers {
  private static final WriteId OTHER = WriteId.position("other", "e1", 7);

  @Test
  void javaWaitsForWhatPythonWrote_andReadsWhatRestsBeside() {
    String text = Repository.runPython(
        """
        import sys, antipode, antipode_redis, redis
        posts = antipode_redis.wrap(redis.Redis.from_url(sys.argv[1]), store="posts", rest="field")
        with antipode.scope(antipode.Lineage.deserialize("1~other..e1.7")) as scope:
            posts.hset("h", "a", "python")
            print(scope.lineage.serialize())
        """,
        servers.url("a"));
    UnifiedJedis posts = AntipodeRedis.wrap(plain, options().rest(Rest.FIELD));
    Lineage lineage = Lineage.deserialize(text);
    assertThat(lineage.stores()).containsExactlyInAnyOrder("other", STORE);
    BarrierResult result = Antipode.barrier(BarrierOptions.defaults().lineage(lineage).stores(STORE));
    assertThat(result.satisfied()).isTrue();
    assertThat(servers.client("b2").hget("h", "a")).isEqualTo("python");
    try (Reading seen = Antipode.reading()) {
      assertThat(posts.hget("h", "a")).isEqualTo("python");
      assertThat(lineage.isCoveredBy(seen.lineage())).isTrue();
    }
  }

  @Test
  void pythonWaitsForWhatJavaWrote_andReadsItsMarksAndWhatRestsBeside() {
    UnifiedJedis posts = AntipodeRedis.wrap(plain, options().rest(Rest.FIELD));
    Lineage lineage;
    try (LineageScope scope = Antipode.scope(Lineage.of(OTHER))) {
      posts.hset("h", "a", "java");
      lineage = scope.lineage();
    }
    Ordered position = (Ordered) lineage.ofStore(STORE).get(0).version();
    RedisServers.until(() -> mark(position.epoch()) >= position.counter(), "Java marks within a second");
    String said = Repository.runPython(
        """
        import sys, antipode, antipode_redis, redis
        _, primary, replica, text, epoch = sys.argv
        lineage = antipode.Lineage.deserialize(text)
        posts = antipode_redis.wrap(redis.Redis.from_url(replica), store="posts", rest="field")
        result = antipode.barrier(lineage, timeout=20, stores=["posts"])
        with antipode.reading() as seen:
            value = posts.hget("h", "a").decode()
        fields = redis.Redis.from_url(primary).hgetall("antipode:epochs")
        marks = {mark.epoch: mark.position for mark in antipode_redis.marks.read_marks(fields)}
        print(result.satisfied, value, lineage <= seen.lineage, marks[epoch])
        """,
        servers.url("a"), servers.url("b2"), lineage.serialize(), position.epoch());
    String[] words = said.split(" ");
    assertThat(words).startsWith("True", "java", "True");
    assertThat(Long.parseLong(words[3])).isGreaterThanOrEqualTo(position.counter());
  }

  @Test
  void envelopesAreTheSame_SHIM_34() {
    String said = Repository.runPython(
        """
        import sys, antipode, antipode_redis, redis
        posts = antipode_redis.wrap(
            redis.Redis.from_url(sys.argv[1]), store="posts", rest="envelope", envelope_keys="post:*")
        with antipode.scope(antipode.Lineage.deserialize("1~other..e1.7")):
            posts.mset({"post:python": b"pyth\\xc3\\xb6n", "plain": "v"})
        """,
        servers.url("a"));
    assertThat(said).isEmpty();
    StoreOptions envelopes = options().rest(Rest.ENVELOPE).envelopeKeys("post:*");
    for (ClientKind kind : ClientKind.values()) {
      try (TestClient posts = kind.wrap(servers.url("a"), envelopes);
          LineageScope scope = Antipode.scope(Lineage.of(OTHER))) {
        try (Reading seen = Antipode.reading()) {
          assertThat(posts.call("GET", "post:python")).as(kind.name()).isEqualTo("pyth\u00c3\u00b6n"); // octets
          assertThat(seen.lineage().covers(OTHER)).as(kind.name()).isTrue();
        }
        posts.call("SET", "post:" + kind, kind.name());
      }
    }
    String read = Repository.runPython(
        """
        import sys, antipode, antipode_redis, redis
        posts = antipode_redis.wrap(
            redis.Redis.from_url(sys.argv[1]), store="posts", rest="envelope", envelope_keys="post:*")
        for kind in sys.argv[2:]:
            with antipode.reading() as seen:
                value = posts.get("post:" + kind).decode()
            print(value, antipode.Lineage.deserialize("1~other..e1.7") <= seen.lineage, seen.lineage.is_complete())
        """,
        servers.url("a"), "JEDIS", "LETTUCE", "LETTUCE_ASYNC", "LETTUCE_REACTIVE");
    assertThat(read.lines()).containsExactly(
        "JEDIS True True", "LETTUCE True True", "LETTUCE_ASYNC True True", "LETTUCE_REACTIVE True True");
  }

  private long mark(String epoch) {
    String value = plain.hget(Marks.DEFAULT_KEY, epoch);
    Long position = value == null ? null : Marks.positionOf(value.getBytes(StandardCharsets.US_ASCII));
    return position == null ? -1 : position;
  }

  @Test
  void scriptsAreTheSame() {
    String said = Repository.runPython(
        """
        import hashlib
        from antipode_redis import field, marks
        for script in (marks.MARK, field.WRITE_SCRIPT):
            print(hashlib.sha1(script.strip().encode()).hexdigest())
        """);
    assertThat(said.lines()).containsExactly(Marker.sha(Marks.SCRIPT.strip()), Marker.sha(FieldRest.SCRIPT.strip()));
  }
}
