package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.internal.diagnostics.dryrun.Records;
import dev.antipode.lab.Repository;
import dev.antipode.testing.DryRunRecording;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.UnifiedJedis;
import shop.Reader;

/** Dry-run's records of reads of a lagging replica: behind, and stale where the read returns something else later (REC). */
class FollowedReadsTest extends WithServers {
  private static final String SERVER = "b2";

  @TempDir
  Path folder;

  private DryRunRecording recorded;
  private RedisClient lettuce;

  @BeforeEach
  void dryRun() {
    UnifiedJedis replica = servers.client(SERVER);
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (replica.dbSize() > 1) { // it has what the tests before wrote, but for the marks
      assertThat(System.nanoTime()).isLessThan(deadline);
    }
    recorded = new DryRunRecording(folder);
  }

  @AfterEach
  void linksAreAsBefore() {
    servers.lab().heal("redis", SERVER);
    if (lettuce != null) {
      lettuce.shutdown(0, 2, TimeUnit.SECONDS);
    }
  }

  private UnifiedJedis reader() {
    return AntipodeRedis.wrap(servers.client(SERVER), options());
  }

  private StatefulRedisConnection<String, String> connection(StoreOptions options) {
    if (lettuce == null) {
      lettuce = RedisClient.create(LettuceResources.SHARED, RedisURI.create(servers.url(SERVER)));
    }
    return AntipodeLettuce.wrap(lettuce.connect(), options);
  }

  /** Does this while nothing reaches the replica, until it was looked at. */
  private void cutOff(Runnable work) {
    servers.lab().partition("redis", SERVER);
    try {
      work.run();
      recorded.looked();
    } finally {
      servers.lab().heal("redis", SERVER);
    }
  }

  private static String kind(String record) {
    return record.replaceFirst(".*\"kind\":\"([a-z]+)\".*", "$1");
  }

  private static void write(UnifiedJedis posts) {
    posts.set("text", "v");
    posts.hset("hash", "f", "v");
    posts.sadd("set", "x", "y", "z");
    posts.rpush("list", "e");
  }

  /** REC-6, REC-12, REC-14; and `antipode check` names the line that reads. */
  @Test
  void aReadThatMissesItsWriteIsStale() throws Exception {
    UnifiedJedis writer = wrapped();
    UnifiedJedis reader = reader();
    try (LineageScope scope = Antipode.messageScope("")) {
      scope.queue("notifications");
      cutOff(() -> {
        writer.set("private-key", "private-value");
        assertThat(Reader.read(() -> reader.get("private-key"))).isNull();
        assertThat(Reader.read(() -> reader.get("private-key-2"))).isNull();
      });
    }
    List<String> found = recorded.findings(2);
    assertThat(found).extracting(FollowedReadsTest::kind).containsExactlyInAnyOrder("stale", "behind");
    assertThat(found).allMatch(line -> line.contains("\"site\":\"shop/Reader.java:"))
        .allMatch(line -> line.contains("\"store\":\"notifications\""))
        .allMatch(line -> line.contains("\"store\":\"" + STORE + "\",\"store_kind\":\"redis\",\"server\":\""
            + servers.url(SERVER)))
        .allMatch(line -> line.contains("\"wanted\":{\"epoch\":"))
        .noneMatch(line -> line.contains("private"));
    assertThat(found).anyMatch(line -> line.contains("\"confirmed\":\"repeat\""));
    Records.end(); // the summary, which rates are made of
    String said = checked();
    assertThat(said).contains("shop/Reader.java:").contains(STORE);
  }

  /** What `antipode check`, of the Python SDK, says of these records. */
  private String checked() throws IOException, InterruptedException {
    Path antipode = Repository.root().resolve(".venv/bin/antipode");
    Process process =
        new ProcessBuilder(antipode.toString(), "check", folder.toString()).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as(said).isEqualTo(1); // confirmed violations
    return said;
  }

  /** Reads whose repeat by the client's own builders says whether they were stale. */
  enum Read {
    GET(posts -> posts.get("text"), posts -> posts.get("text")),
    GET_OCTETS(posts -> posts.get("text".getBytes(StandardCharsets.UTF_8)), posts -> posts.get("text")),
    MGET(posts -> posts.mget("text", "none"), null),
    EXISTS(posts -> posts.exists("text"), posts -> posts.exists("text")),
    HGETALL(posts -> posts.hgetAll("hash"), posts -> posts.hgetall("hash")),
    HGET(posts -> posts.hget("hash", "f"), posts -> posts.hget("hash", "f")),
    SMEMBERS(posts -> posts.smembers("set"), posts -> posts.smembers("set")),
    LRANGE(posts -> posts.lrange("list", 0, -1), posts -> posts.lrange("list", 0, -1));

    private final Function<UnifiedJedis, Object> jedis;
    private final Function<RedisCommands<String, String>, Object> lettuce; // null: what it gives is not compared

    Read(Function<UnifiedJedis, Object> jedis, Function<RedisCommands<String, String>, Object> lettuce) {
      this.jedis = jedis;
      this.lettuce = lettuce;
    }
  }

  /** REC-14: what has not changed since is behind, what has is stale. */
  @ParameterizedTest
  @EnumSource(Read.class)
  void everyDeterministicReadIsRepeatedAsJedisReads(Read read) {
    UnifiedJedis reader = reader();
    staleThenBehind(() -> read.jedis.apply(reader));
  }

  /** The same by Lettuce, whose outputs are made anew for the repeat. */
  @ParameterizedTest
  @EnumSource(value = Read.class, names = "MGET", mode = EnumSource.Mode.EXCLUDE)
  void everyDeterministicReadIsRepeatedAsLettuceReads(Read read) {
    RedisCommands<String, String> reader = connection(options()).sync();
    staleThenBehind(() -> read.lettuce.apply(reader));
  }

  private void staleThenBehind(Runnable read) {
    UnifiedJedis writer = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      cutOff(() -> {
        write(writer);
        read.run();
      });
      assertThat(recorded.findings(1)).extracting(FollowedReadsTest::kind).containsExactly("stale");
      cutOff(() -> {
        writer.set("other", "v");
        read.run();
      });
      assertThat(recorded.findings(2)).extracting(FollowedReadsTest::kind).containsExactlyInAnyOrder("stale", "behind");
      assertThat(scope.isClosed()).isFalse();
    }
  }

  /** REC-12, REC-14: a batch is one read, which is not repeated; nor is what is random or of times. */
  @Test
  void whatIsNotRepeatedIsBehind() {
    UnifiedJedis writer = wrapped();
    UnifiedJedis reader = reader();
    List<Consumer<UnifiedJedis>> reads = List.of(
        posts -> posts.ttl("text"),
        posts -> posts.hkeys("hash"),
        posts -> {
          try (AbstractPipeline batch = posts.pipelined()) {
            batch.get("text");
            batch.hget("hash", "f");
            batch.sync();
          }
        },
        posts -> {
          try (AbstractTransaction batch = posts.multi()) {
            batch.get("text");
            batch.llen("list");
            assertThat(batch.exec()).hasSize(2);
          }
        });
    int count = 0;
    for (Consumer<UnifiedJedis> read : reads) {
      try (LineageScope scope = Antipode.scope()) {
        String value = "v" + count;
        cutOff(() -> {
          writer.set("text", value);
          read.accept(reader);
        });
        assertThat(scope.isClosed()).isFalse();
      }
      count++;
      assertThat(recorded.findings(count)).extracting(FollowedReadsTest::kind).containsOnly("behind");
    }
    assertThat(recorded.count("reads")).isEqualTo(count);
  }

  /** REC-12: the values of Lettuce's MULTI come with its EXEC; futures end on another thread than their scope's. */
  @Test
  void transactionsAndFuturesOfLettuce() {
    StatefulRedisConnection<String, String> reader = connection(options());
    UnifiedJedis writer = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      cutOff(() -> {
        writer.set("text", "v");
        reader.sync().multi();
        reader.async().get("text");
        assertThat(recorded.count("followed_reads")).isZero();
        assertThat(reader.sync().exec()).hasSize(1);
      });
      assertThat(recorded.findings(1)).hasSize(1);
      cutOff(() -> {
        writer.set("text", "w");
        assertThat(reader.async().get("text").toCompletableFuture().orTimeout(20, TimeUnit.SECONDS).join()).isEqualTo("v");
      });
      assertThat(scope.isClosed()).isFalse();
    }
    assertThat(recorded.findings(2)).extracting(FollowedReadsTest::kind).contains("stale");
  }

  /** REC-12: neither {@code waitOnRead} nor {@code reading(after)} waits. */
  @Test
  void readsThatWouldWaitDoNot() {
    servers.lab().partition("redis", SERVER);
    try {
      StoreOptions waiting = options().waitOnRead(true).timeout(Duration.ofSeconds(60));
      UnifiedJedis jedis = AntipodeRedis.wrap(servers.client(SERVER), waiting);
      StatefulRedisConnection<String, String> connection = connection(waiting);
      try (LineageScope scope = Antipode.scope()) {
        wrapped().set("k", "v");
        long began = System.nanoTime();
        assertThat(jedis.get("k")).isNull();
        assertThat(connection.sync().get("k")).isNull();
        try (Reading seen = Antipode.reading(scope.lineage())) {
          assertThat(jedis.get("k")).isNull();
          assertThat(connection.sync().get("k")).isNull();
          assertThat(seen.after()).isPresent();
        }
        assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(30));
      }
      recorded.awaitCount("followed_reads", 4);
    } finally {
      servers.lab().heal("redis", SERVER);
    }
  }

  /** REC-13: what is there is no finding. */
  @Test
  void whatIsThereIsNone() {
    UnifiedJedis writer = wrapped();
    try (LineageScope scope = Antipode.scope()) {
      writer.set("k", "v");
      assertThat(writer.get("k")).isEqualTo("v");
      assertThat(scope.isClosed()).isFalse();
    }
    recorded.settled();
    assertThat(recorded.count("followed_reads")).isOne();
    assertThat(recorded.lines("behind", "stale")).isEmpty();
  }

  /** REC-14: the same value with another lineage beside it is the same value. */
  @Test
  void whatRestsBesideAValueIsNoPartOfIt() {
    StoreOptions options = StoreOptions.named(STORE + "-beside").rest(Rest.FIELD);
    UnifiedJedis writer = AntipodeRedis.wrap(plain, options);
    UnifiedJedis reader = AntipodeRedis.wrap(servers.client(SERVER), options);
    RedisCommands<String, String> other = connection(options).sync();
    for (int round = 0; round < 2; round++) {
      try (LineageScope scope = Antipode.scope()) {
        int before = round;
        cutOff(() -> {
          writer.hset("hash", "f", "v");
          assertThat(reader.hgetAll("hash")).hasSize(before);
          assertThat(other.hgetall("hash")).hasSize(before);
        });
        assertThat(scope.isClosed()).isFalse();
      }
      List<String> found = recorded.findings(2 * round + 2);
      assertThat(found.subList(2 * round, found.size()))
          .extracting(FollowedReadsTest::kind)
          .containsOnly(round == 0 ? "stale" : "behind");
    }
  }
}
