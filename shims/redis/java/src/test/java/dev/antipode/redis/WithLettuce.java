package dev.antipode.redis;

import dev.antipode.Lineage;
import dev.antipode.WriteId;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;

/** Tests of wrapped connections of Lettuce, all of one client. */
abstract class WithLettuce extends WithServers {
  private static final long AHEAD = 5000; // octets of the replication stream that are not written yet

  private RedisClient client;

  @AfterEach
  void shutdown() {
    if (client != null) {
      client.shutdown(0, 2, TimeUnit.SECONDS);
    }
  }

  RedisClient client() {
    if (client == null) {
      client = RedisClient.create(LettuceResources.SHARED, RedisURI.create(servers.url("a")));
    }
    return client;
  }

  /** A connection to the primary. */
  StatefulRedisConnection<String, String> posts() {
    return AntipodeLettuce.wrap(client().connect(), options());
  }

  /** A connection to where a proxy leads. */
  StatefulRedisConnection<String, String> through(CuttingProxy proxy) {
    RedisURI place = RedisURI.create("127.0.0.1", proxy.port());
    place.setTimeout(Duration.ofSeconds(20));
    return AntipodeLettuce.wrap(client().connect(StringCodec.UTF8, place), options());
  }

  static <T> T get(RedisFuture<T> future) throws Exception {
    return future.get(20, TimeUnit.SECONDS);
  }

  /** What the primary itself will have only after {@link #advance}. */
  Lineage ahead() {
    Replication now = here();
    return Lineage.of(WriteId.position(STORE, now.position().epoch(), now.offset() + AHEAD));
  }

  void advance() {
    plain.set("filler", "x".repeat((int) AHEAD));
  }
}
