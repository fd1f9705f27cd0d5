package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import dev.antipode.Store;
import dev.antipode.StoreOptions;
import dev.antipode.UnfitStoreException;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.Shims;
import redis.clients.jedis.UnifiedJedis;

/**
 * Antipode for Redis, with Jedis.
 *
 * <pre>{@code
 * UnifiedJedis posts = AntipodeRedis.wrap(RedisClient.create("a.redis", 6379), "blog-posts");
 * posts.set("post:42", body);                    // its position joins the scope
 * Antipode.barrier(BarrierOptions.defaults());   // elsewhere: waits for the replicas there
 * }</pre>
 */
public final class AntipodeRedis {
  /** The option for the key of the hash that holds the marks of epochs: {@code options.extra(MARKS_KEY, "…")}. */
  public static final String MARKS_KEY = Marks.OPTION;

  static {
    CallSite.skipPackages("redis.clients.");
  }

  private AntipodeRedis() {}

  /**
   * The same client, with its writes recorded under the store's name. It shares the connections of the one passed in,
   * which stays plain; closing either closes them.
   *
   * @throws ConfigurationException for options or a client that cannot be
   * @throws UnfitStoreException for a Redis Cluster. A server that does not answer now is no error: what it lacks is then
   *     said when it is first used
   */
  public static UnifiedJedis wrap(UnifiedJedis client, String store) {
    return wrap(client, StoreOptions.named(store));
  }

  /**
   * The same client, with its writes recorded under the store's name.
   *
   * @param options {@code replicas}: the servers that readers of this region may use, as URLs or clients; without, the
   *     client's own. {@code rest}: nowhere, in a field of hashes, or in envelopes: values of the string keys that match
   *     {@code envelopeKeys}, which are then to be read through such a client only. {@code on_unfit}: whether a topology
   *     that allows no proof is an error here, or its entries are unproven later
   * @throws ConfigurationException for options or a client that cannot be
   * @throws UnfitStoreException for a Redis Cluster
   */
  public static UnifiedJedis wrap(UnifiedJedis client, StoreOptions options) {
    return RecordingJedis.wrap(client, options);
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
