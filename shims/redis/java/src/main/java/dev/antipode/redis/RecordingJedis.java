package dev.antipode.redis;

import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.providers.ConnectionProvider;

/** A {@link UnifiedJedis} whose writes are recorded. Made by {@link AntipodeRedis#wrap}, never by itself. */
final class RecordingJedis extends UnifiedJedis {
  // What the constructor of Jedis asks for before this object has any field.
  private static final ThreadLocal<CommandObjects> HANDED = new ThreadLocal<>();

  private final UnifiedJedis plain;
  private final Binding binding;

  private RecordingJedis(UnifiedJedis plain, CommandExecutor executor, ConnectionProvider provider, Binding binding) {
    super(executor, provider, RedisProtocol.RESP3, plain.getCache());
    this.plain = plain;
    this.binding = binding;
  }

  static RecordingJedis of(UnifiedJedis plain, Binding binding) {
    ConnectionProvider provider = Target.Internals.provider(plain);
    CommandExecutor executor = Target.Internals.get(UnifiedJedis.class, "executor", plain);
    HANDED.set(Target.Internals.get(UnifiedJedis.class, "commandObjects", plain));
    try {
      return new RecordingJedis(
          plain, RecordingExecutor.like(executor, provider, binding), provider, binding);
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
}
