package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import dev.antipode.Store;
import dev.antipode.StoreOptions;
import dev.antipode.UnfitStoreException;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.Shims;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.api.StatefulRedisConnection;

/**
 * Antipode for Redis, with Lettuce.
 *
 * <pre>{@code
 * StatefulRedisConnection<String, String> posts = AntipodeLettuce.wrap(client.connect(), "blog-posts");
 * posts.sync().set("post:42", body);             // its position joins the scope; async() and reactive() as well
 * Antipode.barrier(BarrierOptions.defaults());   // elsewhere: waits for the replicas there
 * }</pre>
 */
public final class AntipodeLettuce {
  static {
    CallSite.skipPackages("io.lettuce.", "io.netty.", "reactor.");
  }

  private AntipodeLettuce() {}

  /**
   * The same connection, with its writes recorded under the store's name, in the scope in which they are issued. It
   * shares the connection that is passed in, which stays plain; closing either closes both.
   *
   * @throws ConfigurationException for options or a connection that cannot be: one that publishes and subscribes, of a
   *     primary with replicas, out of a pool, or that is not open
   * @throws UnfitStoreException for a server of a Redis Cluster. One that does not answer now is no error: what it lacks
   *     is then said when it is first used
   */
  public static <K, V> StatefulRedisConnection<K, V> wrap(StatefulRedisConnection<K, V> connection, String store) {
    return wrap(connection, StoreOptions.named(store));
  }

  /**
   * The same connection, with its writes recorded under the store's name.
   *
   * @param options {@code replicas}: the servers that readers of this region may use, as URLs or RedisURIs; without, the
   *     connection's own. The others are those of {@code AntipodeRedis.wrap}, and {@code extra("marks_key", "…")}
   * @throws ConfigurationException for options or a connection that cannot be
   * @throws UnfitStoreException for a server of a Redis Cluster
   */
  public static <K, V> StatefulRedisConnection<K, V> wrap(
      StatefulRedisConnection<K, V> connection, StoreOptions options) {
    StatefulRedisConnectionImpl<K, V> plain = LettuceWrapping.plainOf(connection);
    return LettuceWrapping.recording(plain, ClientWrapper.bind(LettuceTargets.of(plain), options));
  }

  /**
   * What wraps each of many connections as {@link #wrap(StatefulRedisConnection, StoreOptions)} does: for pools and frameworks
   * that connect by themselves. The store is joined here; its own server is known from the first connection on.
   *
   * @throws ConfigurationException for options that cannot be
   */
  public static LettuceWrapping wrapping(StoreOptions options) {
    return new LettuceWrapping(options);
  }

  /**
   * This process waits for a store's servers, and never reads or writes it.
   *
   * @throws ConfigurationException where no server is given
   */
  public static Store register(StoreOptions options) {
    return Shims.join(options, RedisShim::new);
  }
}
