package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.support.AsyncConnectionPoolSupport;
import io.lettuce.core.support.BoundedAsyncPool;
import io.lettuce.core.support.BoundedPoolConfig;
import io.lettuce.core.support.ConnectionPoolSupport;
import java.util.concurrent.TimeUnit;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Lettuce's own pools, of connections that are wrapped before they go in (SHIM-50). */
class LettucePoolsTest extends WithLettuce {
  private static void records(StatefulRedisConnection<String, String> connection) {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(connection.sync().set("k", "v")).isEqualTo("OK");
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void ofObjects_SHIM_50(boolean wrapsConnections) throws Exception {
    try (GenericObjectPool<StatefulRedisConnection<String, String>> pool = ConnectionPoolSupport.createGenericObjectPool(
        this::posts, new GenericObjectPoolConfig<>(), wrapsConnections)) {
      for (int turn = 0; turn < 3; turn++) {
        StatefulRedisConnection<String, String> taken = pool.borrowObject();
        records(taken);
        if (wrapsConnections) {
          taken.close(); // gives it back
        } else {
          pool.returnObject(taken);
        }
        assertThat(pool.getNumActive()).isZero();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void asynchronous_SHIM_50(boolean wrapsConnections) throws Exception {
    BoundedAsyncPool<StatefulRedisConnection<String, String>> pool = AsyncConnectionPoolSupport.createBoundedObjectPool(
        () -> client().connectAsync(StringCodec.UTF8, RedisURI.create(servers.url("a")))
            .thenApply(plain -> AntipodeLettuce.wrap(plain, options())),
        BoundedPoolConfig.create(),
        wrapsConnections);
    for (int turn = 0; turn < 3; turn++) {
      StatefulRedisConnection<String, String> taken = pool.acquire().get(60, TimeUnit.SECONDS);
      records(taken);
      pool.release(taken).get(60, TimeUnit.SECONDS);
    }
    pool.close();
  }
}
