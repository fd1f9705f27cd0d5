package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import dev.antipode.Logs;
import dev.antipode.Store;
import dev.antipode.StoreOptions;
import dev.antipode.UnfitStoreException;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shims;
import java.io.IOException;
import redis.clients.jedis.RedisClusterClient;
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
  public static final String MARKS_KEY = "marks_key";

  private static final int PROBE_MILLIS = 1000;

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
   *     client's own. {@code rest}: nowhere, or in a field of hashes. {@code on_unfit}: whether a topology that allows no
   *     proof is an error here, or its entries are unproven later
   * @throws ConfigurationException for options or a client that cannot be
   * @throws UnfitStoreException for a Redis Cluster
   */
  public static UnifiedJedis wrap(UnifiedJedis client, StoreOptions options) {
    if (client instanceof RedisClusterClient) {
      throw new UnfitStoreException(client.getClass().getSimpleName() + ": it " + Facts.CLUSTER);
    }
    Capabilities.Rest rest = options.restOr(null);
    if ((rest != null && rest != Capabilities.Rest.FIELD) || options.envelopeKeys() != null) {
      throw new ConfigurationException(
          "rest=" + rest + ": in Java lineages rest nowhere or in a FIELD of hashes; envelopes are Python's alone");
    }
    UnifiedJedis plain = client instanceof RecordingJedis wrapped ? wrapped.plain() : client;
    Target target = Target.of(plain);
    Facts facts = probe(target, options);
    if (facts.cluster() && options.onUnfit() == StoreOptions.OnUnfit.RAISE) {
      throw new UnfitStoreException(
          target.address() + " " + Facts.CLUSTER + ". onUnfit(UNPROVEN) lets the service start");
    }
    RegisteredStore store = Shims.join(options, RedisShim::new);
    Server server = store.useServer(target, target.address());
    Marker marker = ((RedisShim) store.shim()).marker(target);
    if (facts.reached()) {
      marker.facts(facts);
    }
    RecordingJedis wrapped = RecordingJedis.of(plain, new Binding(store, options, target, server, marker));
    marker.use(wrapped);
    return wrapped;
  }

  /**
   * This process waits for a store's servers, and never reads or writes it.
   *
   * @throws ConfigurationException where no server is given
   */
  public static Store register(StoreOptions options) {
    return Shims.join(options, RedisShim::new);
  }

  /** Asks the server what it allows; what cannot be reached now is asked when it can. */
  private static Facts probe(Target target, StoreOptions options) {
    String key = options.extra(MARKS_KEY) instanceof String named ? named : Marks.DEFAULT_KEY;
    try (Session session = new Session(target, PROBE_MILLIS)) {
      return Facts.probe(session, options.name(), key);
    } catch (IOException error) {
      Logs.info(
          "probe " + options.name() + " " + target.address(),
          options.name() + ": " + target.address() + " does not answer yet (" + error.getMessage()
              + "); its rights are asked when it does");
      return Facts.UNKNOWN;
    } catch (ServerError error) { // LOADING, a restart just now: asked again by the marker
      return Facts.UNKNOWN;
    }
  }
}
