package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.UnifiedJedis;

/** The marks that Java writes (EPOCH-16 to EPOCH-22). */
class MarksTest extends WithServers {
  private static final String OWN = "marks-of-this-test";

  private String epoch() {
    return Replication.parse(plain.info("replication").getBytes(StandardCharsets.US_ASCII)).epoch();
  }

  private Long mark(String key, String epoch) {
    String value = plain.hget(key, epoch);
    return value == null ? null : Marks.positionOf(value.getBytes(StandardCharsets.US_ASCII));
  }

  /** What the script answers: a word. */
  private String script(String epoch, long counter, int periodMillis, int most) {
    Object answer = plain.eval(
        Marks.SCRIPT,
        List.of(OWN),
        List.of(epoch, Long.toString(counter), Integer.toString(periodMillis), Integer.toString(most), "16"));
    return (String) ((List<?>) answer).get(0);
  }

  @Test
  void aPrimaryThatIsHeldIsMarkedWithoutAnyWrite_EPOCH_19() {
    wrapped();
    RedisServers.until(() -> mark(Marks.DEFAULT_KEY, epoch()) != null, "the epoch is marked");
    assertThat(epoch()).matches("[0-9a-f]{16}"); // WIRE-39
  }

  @Test
  void theLastWriteIsCoveredWithinAWhile_EPOCH_19() {
    UnifiedJedis posts = wrapped();
    for (int round = 0; round < 3; round++) {
      try (LineageScope scope = Antipode.scope()) {
        posts.set("k", "v" + round);
        Ordered last = (Ordered) scope.lineage().ofStore(STORE).get(0).version();
        RedisServers.until(
            () -> mark(Marks.DEFAULT_KEY, last.epoch()) != null && mark(Marks.DEFAULT_KEY, last.epoch()) >= last.counter(),
            "the last write is covered");
      }
    }
  }

  @Test
  void manyProcessesMakeOneMarkAPeriod_EPOCH_20() {
    assertThat(script("", 0, 60_000, 1000)).isEqualTo("marked");
    long first = mark(OWN, epoch());
    plain.set("k", "v");
    assertThat(script(epoch(), first + 1, 60_000, 1000)).isEqualTo("wait");
    assertThat(mark(OWN, epoch())).isEqualTo(first);
    assertThat(script(epoch(), first, 60_000, 1000)).isEqualTo("covered");
    assertThat(script(epoch(), first + 1, 0, 1000)).isEqualTo("marked");
    assertThat(mark(OWN, epoch())).isGreaterThan(first); // EPOCH-17, EPOCH-18
  }

  @Test
  void marksAreBoundedAndTheOldestGoFirst_EPOCH_21() {
    Map<String, String> old = new HashMap<>();
    for (int number = 1; number <= 20; number++) {
      old.put("%016x".formatted(number), "5 " + number);
    }
    old.put("clock", "20 0 -");
    plain.hset(OWN, old);
    assertThat(script("", 0, 0, 10)).isEqualTo("marked");
    assertThat(plain.hlen(OWN)).isEqualTo(11); // with the clock
    assertThat(mark(OWN, "%016x".formatted(1))).isNull();
    assertThat(mark(OWN, "%016x".formatted(20))).isEqualTo(5);
    assertThat(mark(OWN, epoch())).isNotNull();
  }

  @Test
  void evictionThatMayTakeMarksIsWarnedAbout_EPOCH_21() {
    plain.configSet("maxmemory-policy", "allkeys-lru");
    try {
      wrapped();
      assertThat(logs.text()).contains("maxmemory-policy allkeys-lru, which may evict the marks in antipode:epochs");
    } finally {
      plain.configSet("maxmemory-policy", "noeviction");
    }
  }

  @Test
  void oneRecordIsAllThatIsLeftBehind_SHIM_4() {
    UnifiedJedis posts = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      posts.set("k", "v");
    }
    RedisServers.until(() -> plain.exists(Marks.DEFAULT_KEY), "marked");
    assertThat(plain.keys("*")).containsExactlyInAnyOrder("k", Marks.DEFAULT_KEY);
  }
}
