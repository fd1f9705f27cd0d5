package dev.antipode.redis;

import dev.antipode.StoreOptions;
import dev.antipode.UnfitStoreException;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Connection;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.providers.ConnectionProvider;

/** A {@link UnifiedJedis} whose writes are recorded. Made by {@link AntipodeRedis#wrap}, never by itself. */
final class RecordingJedis extends UnifiedJedis {
  // What the constructor of Jedis asks for before this object has any field.
  private static final ThreadLocal<CommandObjects> HANDED = new ThreadLocal<>();

  private final UnifiedJedis plain;
  private final JedisArrivals arrivals;
  private final Binding binding;

  private RecordingJedis(UnifiedJedis plain, CommandExecutor executor, JedisArrivals arrivals, Binding binding) {
    super(executor, new IterationConnections(arrivals, executor), RedisProtocol.RESP3, plain.getCache());
    this.plain = plain;
    this.arrivals = arrivals;
    this.binding = binding;
  }

  /** The same client, wrapped: see {@link AntipodeRedis#wrap}. */
  static UnifiedJedis wrap(UnifiedJedis client, StoreOptions options) {
    if (client instanceof RedisClusterClient) {
      throw new UnfitStoreException(client.getClass().getSimpleName() + ": it " + Facts.CLUSTER);
    }
    UnifiedJedis plain = client instanceof RecordingJedis wrapped ? wrapped.plain() : client;
    Target target = JedisTargets.of(plain);
    Binding binding = ClientWrapper.bind(target, options);
    RecordingJedis wrapped = of(plain, binding);
    binding.marker().use(wrapped);
    if (!target.moves()) { // else it is asked for again anyway
      binding.store().expectServer(
          options,
          plain.getClass().getSimpleName(),
          wrapped,
          known -> List.of(JedisTargets.of(((RecordingJedis) known).plain)),
          known -> JedisTargets.lead(((RecordingJedis) known).plain))
          .watchHeld(known -> ((RecordingJedis) known).arrivals.meetHeld())
          .found(List.of(target));
    }
    return wrapped;
  }

  private static RecordingJedis of(UnifiedJedis plain, Binding binding) {
    JedisArrivals arrivals = new JedisArrivals(JedisTargets.provider(plain), binding);
    CommandExecutor executor = JedisTargets.get(UnifiedJedis.class, "executor", plain);
    HANDED.set(JedisTargets.get(UnifiedJedis.class, "commandObjects", plain));
    try {
      return new RecordingJedis(
          plain, RecordingExecutor.like(executor, arrivals, binding), arrivals, binding);
    } finally {
      HANDED.remove();
    }
  }

  /** The wrapped client's own: its protocol, key prefix and mappers. */
  @Override
  protected CommandObjects newCommandObjects(RedisProtocol protocol) {
    return HANDED.get();
  }

  /** The client that was wrapped. */
  UnifiedJedis plain() {
    return plain;
  }

  @Override
  public AbstractPipeline pipelined() {
    return new RecordingPipeline(provider.getConnection(), commandObjects, binding);
  }

  @Override
  public AbstractTransaction multi() {
    return transaction(true);
  }

  @Override
  public AbstractTransaction transaction(boolean doMulti) {
    return new RecordingTransaction(provider.getConnection(), doMulti, commandObjects, binding);
  }

  /** Closes the connections, which it shares with the client that was wrapped. */
  @Override
  public void close() {
    binding.marker().unuse(this);
    super.close();
  }

  /** The client's connections, but for iterations: these take one by themselves, and here each batch is a command (SHIM-44). */
  private record IterationConnections(ConnectionProvider plain, CommandExecutor executor) implements ConnectionProvider {
    @Override
    public Connection getConnection() {
      return plain.getConnection();
    }

    @Override
    public Connection getConnection(CommandArguments arguments) {
      return plain.getConnection(arguments);
    }

    @Override
    public Map<?, ?> getConnectionMap() {
      return Map.of("", new Connection() { // opens none
        @Override
        public Object executeCommand(CommandArguments arguments) {
          return executor.executeCommand(new CommandObject<>(arguments, BuilderFactory.RAW_OBJECT));
        }
      });
    }

    @Override
    public void close() throws Exception {
      plain.close();
    }
  }
}
