package dev.antipode.redis;

import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.ConnectionFacade;
import io.lettuce.core.protocol.RedisCommand;
import io.lettuce.core.resource.ClientResources;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;

/** Hands the commands of a wrapped connection to its line. Events of the connection stay the plain one's. */
final class LettuceWriter<X, Y> implements RedisChannelWriter {
  private final RedisChannelWriter plain;
  private final LettuceLine<X, Y> line;

  LettuceWriter(RedisChannelWriter plain, LettuceLine<X, Y> line) {
    this.plain = plain;
    this.line = line;
  }

  @Override
  @SuppressWarnings("unchecked") // the connection's own commands alone come here
  public <K, V, T> RedisCommand<K, V, T> write(RedisCommand<K, V, T> command) {
    RedisCommand<X, Y, T> own = (RedisCommand<X, Y, T>) command;
    CommandWithQuestion<X, Y, ?> asked = CommandWrapper.unwrap(own, CommandWithQuestion.class);
    if (asked == null) {
      line.send(own);
    } else {
      line.send(own, asked);
    }
    return command;
  }

  @Override
  @SuppressWarnings("unchecked") // as above
  public <K, V> Collection<RedisCommand<K, V, ?>> write(Collection<? extends RedisCommand<K, V, ?>> commands) {
    commands.forEach(this::write);
    return (Collection<RedisCommand<K, V, ?>>) commands;
  }

  @Override
  public void setConnectionFacade(ConnectionFacade facade) {
    // stays the plain connection
  }

  @Override
  public void setAutoFlushCommands(boolean autoFlush) {
    plain.setAutoFlushCommands(autoFlush);
  }

  @Override
  public void flushCommands() {
    plain.flushCommands();
  }

  @Override
  public ClientResources getClientResources() {
    return plain.getClientResources();
  }

  @Override
  public void close() {
    plain.close();
  }

  @Override
  public CompletableFuture<Void> closeAsync() {
    return plain.closeAsync();
  }
}
