package dev.antipode.redis;

import io.lettuce.core.RedisReactiveCommandsImpl;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.RedisCommand;
import io.opentelemetry.context.Context;
import java.util.function.Supplier;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Reactive commands that know in which scope they were made: they are often subscribed to on a thread without any. */
final class LettuceReactive<K, V> extends RedisReactiveCommandsImpl<K, V> {
  LettuceReactive(RecordingConnection<K, V> connection, RedisCodec<K, V> codec) {
    super(connection, codec, () -> connection.getOptions().getJsonParser().get()); // asked later: it is being made
  }

  /** A command, and where it was made. */
  static final class MadeCommand<K, V, T> extends CommandWrapper<K, V, T> {
    private final Context context;

    MadeCommand(RedisCommand<K, V, T> command, Context context) {
      super(command);
      this.context = context;
    }

    Context context() {
      return context;
    }
  }

  private static <K, V, T> Supplier<RedisCommand<K, V, T>> made(Supplier<RedisCommand<K, V, T>> commands) {
    Context context = Context.current();
    return () -> new MadeCommand<>(commands.get(), context);
  }

  @Override
  public <T> Mono<T> createMono(Supplier<RedisCommand<K, V, T>> commands) {
    return super.createMono(made(commands));
  }

  @Override
  public <T> Flux<T> createFlux(Supplier<RedisCommand<K, V, T>> commands) {
    return super.createFlux(made(commands));
  }

  @Override
  public <T, R> Flux<R> createDissolvingFlux(Supplier<RedisCommand<K, V, T>> commands) {
    return super.createDissolvingFlux(made(commands));
  }
}
