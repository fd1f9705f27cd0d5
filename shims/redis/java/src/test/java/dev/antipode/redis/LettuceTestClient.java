package dev.antipode.redis;

import dev.antipode.StoreOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/** Lettuce, as the tests drive it, by one of its three faces. */
final class LettuceTestClient implements TestClient {
  private final ClientKind kind;
  private final RedisClient client;
  private final StoreOptions options;
  private final StatefulRedisConnection<byte[], byte[]> connection;

  LettuceTestClient(ClientKind kind, RedisURI place, StoreOptions options) {
    this.kind = kind;
    this.client = RedisClient.create(LettuceResources.SHARED, place);
    this.options = options;
    boolean isReady = false;
    try {
      connection = AntipodeLettuce.wrap(client.connect(ByteArrayCodec.INSTANCE), options);
      isReady = true;
    } finally {
      if (!isReady) {
        close();
      }
    }
  }

  StatefulRedisConnection<byte[], byte[]> connection() {
    return connection;
  }

  /** Whatever the reply is. */
  private static final class Any extends LettuceReply<byte[], byte[], Object> {
    Any() {
      super(ByteArrayCodec.INSTANCE);
    }

    @Override
    public Object get() {
      return value();
    }

    @Override
    public boolean hasError() {
      return value() instanceof ServerError;
    }

    @Override
    public String getError() {
      return value() instanceof ServerError error ? error.getMessage() : null;
    }
  }

  private static ProtocolKeyword name(Object... words) {
    byte[] octets = words[0].toString().getBytes(StandardCharsets.US_ASCII);
    return new ProtocolKeyword() {
      @Override
      public byte[] getBytes() {
        return octets;
      }

      @Override
      public String toString() {
        return words[0].toString();
      }
    };
  }

  private static CommandArgs<byte[], byte[]> arguments(Object... words) {
    CommandArgs<byte[], byte[]> arguments = new CommandArgs<>(ByteArrayCodec.INSTANCE);
    for (byte[] each : TestClient.arguments(words)) {
      arguments.add(each);
    }
    return arguments;
  }

  private static <T> T get(RedisFuture<T> future) {
    try {
      return future.get(20, TimeUnit.SECONDS);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof RuntimeException thrown) {
        throw thrown;
      }
      throw new AssertionError(error);
    } catch (InterruptedException | TimeoutException error) {
      throw new AssertionError(error);
    }
  }

  private static RedisFuture<Object> send(StatefulRedisConnection<byte[], byte[]> connection, Object... words) {
    return connection.async().dispatch(name(words), new Any(), arguments(words));
  }

  private Object call(StatefulRedisConnection<byte[], byte[]> to, Object... words) {
    return TestClient.readable(switch (kind) {
      case LETTUCE_ASYNC -> get(send(to, words));
      case LETTUCE_REACTIVE -> to.reactive().dispatch(name(words), new Any(), arguments(words)).next().block();
      default -> to.sync().dispatch(name(words), new Any(), arguments(words));
    });
  }

  @Override
  public Object call(Object... words) {
    return call(connection, words);
  }

  /** Sends a command and gives its future, or subscription, up. */
  void cancelled(Object... words) {
    if (kind == ClientKind.LETTUCE_REACTIVE) {
      connection.reactive().dispatch(name(words), new Any(), arguments(words)).subscribe().dispose();
    } else {
      send(connection, words).cancel(true);
    }
  }

  @Override
  public Batch batch() {
    List<RedisFuture<Object>> futures = new ArrayList<>();
    connection.setAutoFlushCommands(false);
    return new Batch() {
      @Override
      public Batch add(Object... words) {
        futures.add(LettuceTestClient.send(connection, words));
        return this;
      }

      @Override
      public List<Object> send() {
        connection.flushCommands();
        List<Object> replies = new ArrayList<>();
        for (RedisFuture<Object> each : futures) {
          replies.add(replyOrError(() -> get(each)));
        }
        futures.clear();
        return replies;
      }

      @Override
      public void close() {
        send();
        connection.setAutoFlushCommands(true);
      }
    };
  }

  private static Object replyOrError(Supplier<Object> reply) {
    try {
      return TestClient.readable(reply.get());
    } catch (RuntimeException error) {
      return error;
    }
  }

  @Override
  public Transaction transaction() {
    StatefulRedisConnection<byte[], byte[]> own =
        AntipodeLettuce.wrap(client.connect(ByteArrayCodec.INSTANCE), options);
    return new Transaction() {
      @Override
      public void watch(String key) {
        own.sync().watch(key.getBytes(StandardCharsets.UTF_8));
      }

      @Override
      public Object call(Object... words) {
        return LettuceTestClient.this.call(own, words);
      }

      @Override
      public void multi() {
        if (kind == ClientKind.LETTUCE_REACTIVE) {
          own.reactive().multi().block();
        } else {
          own.sync().multi();
        }
      }

      @Override
      public void add(Object... words) {
        switch (kind) {
          case LETTUCE_ASYNC -> send(own, words);
          case LETTUCE_REACTIVE -> own.reactive().dispatch(name(words), new Any(), arguments(words))
              .subscribe(value -> {}, error -> {});
          default -> own.sync().dispatch(name(words), new Any(), arguments(words));
        }
      }

      @Override
      @SuppressWarnings("unchecked") // a list stays one
      public List<Object> exec() {
        TransactionResult result = switch (kind) {
          case LETTUCE_ASYNC -> get(own.async().exec());
          case LETTUCE_REACTIVE -> own.reactive().exec().block();
          default -> own.sync().exec();
        };
        return result.wasDiscarded() ? null : (List<Object>) TestClient.readable(result.stream().toList());
      }

      @Override
      public void discard() {
        own.sync().discard();
      }

      @Override
      public void close() {
        own.close();
      }
    };
  }

  @Override
  public Class<? extends Exception> serverError() {
    return RedisCommandExecutionException.class;
  }

  @Override
  public Class<? extends Exception> noReply() {
    return RedisException.class;
  }

  @Override
  public void close() {
    client.shutdown(0, 2, TimeUnit.SECONDS);
  }
}
