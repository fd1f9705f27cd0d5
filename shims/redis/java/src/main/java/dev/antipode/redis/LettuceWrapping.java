package dev.antipode.redis;

import dev.antipode.StoreOptions;
import dev.antipode.UnfitStoreException;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.ServerSource;
import dev.antipode.shim.Shims;
import io.lettuce.core.StatefulRedisConnectionImpl;
import io.lettuce.core.api.StatefulRedisConnection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Wraps each of many connections to one store, for pools and frameworks that connect by themselves: a server is asked what it
 * allows once, and not by each connection. {@link AntipodeLettuce#wrapping} makes it.
 */
public final class LettuceWrapping {
  private final StoreOptions options;
  private final Map<String, Binding> bindings = new ConcurrentHashMap<>();
  private final ServerSource expected;

  LettuceWrapping(StoreOptions options) {
    this.options = options;
    RegisteredStore store = Shims.join(options, RedisShim::new);
    this.expected = store.expectServer(options, "connections that are wrapped later", this, pool -> List.of()); // BAR-52
  }

  /**
   * The same connection, as {@link AntipodeLettuce#wrap(StatefulRedisConnection, StoreOptions)} returns it.
   *
   * @throws dev.antipode.ConfigurationException for a connection that cannot be wrapped
   * @throws UnfitStoreException for a server of a Redis Cluster
   */
  public <K, V> StatefulRedisConnection<K, V> wrap(StatefulRedisConnection<K, V> connection) {
    StatefulRedisConnectionImpl<K, V> plain = plainOf(connection);
    Target target = LettuceTargets.of(plain);
    Binding binding = bindings.computeIfAbsent(target.address(), address -> ClientWrapper.bind(target, options));
    StatefulRedisConnection<K, V> wrapped = recording(plain, binding); // the server that it reached joins first
    expected.found(List.of(target));
    return wrapped;
  }

  static <K, V> StatefulRedisConnectionImpl<K, V> plainOf(StatefulRedisConnection<K, V> connection) {
    return connection instanceof RecordingConnection<K, V> wrapped ? wrapped.plain() : LettuceTargets.checked(connection);
  }

  static <K, V> StatefulRedisConnection<K, V> recording(StatefulRedisConnectionImpl<K, V> plain, Binding binding) {
    RecordingConnection<K, V> wrapped = RecordingConnection.of(plain, binding);
    binding.marker().use(wrapped);
    return wrapped;
  }
}
