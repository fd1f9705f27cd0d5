package dev.antipode.spring;

import dev.antipode.AntipodeException;
import dev.antipode.ConfigurationException;
import dev.antipode.StoreOptions;
import dev.antipode.redis.AntipodeLettuce;
import dev.antipode.redis.LettuceWrapping;
import dev.antipode.shim.Logs;
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.lang.reflect.Field;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.springframework.dao.DataAccessException;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnection.PipeliningFlushPolicy;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionProvider;

/**
 * Spring Data Redis on Lettuce. A factory connects by itself, again and again, and only a subclass can say how: in its place
 * stands one that is configured the same, and whose connections are wrapped before they go into a pool.
 */
final class SpringRedis implements ClientKind {
  @Override
  public Object wrap(Object bean, StoreOptions options) {
    if (!(bean instanceof LettuceConnectionFactory plain)) {
      return null;
    }
    if (plain.getClass() != LettuceConnectionFactory.class) {
      throw new ConfigurationException(
          "AP501",
          options.name() + ": a " + plain.getClass().getName() + " cannot be wrapped: want a LettuceConnectionFactory itself. "
              + "A subclass wraps by its own doCreateConnectionProvider(), with AntipodeLettuce.wrapping(options)");
    }
    LettuceConnectionFactory recording = like(plain, AntipodeLettuce.wrapping(options));
    plain.destroy();
    recording.afterPropertiesSet();
    if (options.replicas() == null) {
      meet(recording, options);
    }
    return recording;
  }

  private static LettuceConnectionFactory like(LettuceConnectionFactory plain, LettuceWrapping wrapping) {
    RedisConfiguration where = valueOf(plain, "configuration", RedisConfiguration.class);
    LettuceConnectionFactory made;
    if (where instanceof RedisStandaloneConfiguration one) {
      made = new RecordingFactory(plain, one, wrapping);
    } else if (where instanceof RedisSentinelConfiguration sentinels) {
      made = new RecordingFactory(plain, sentinels, wrapping);
    } else {
      throw new ConfigurationException(
          "AP501",
          "a LettuceConnectionFactory with a " + (where == null ? null : where.getClass().getSimpleName())
              + " cannot be wrapped: want one server, or Sentinels");
    }
    made.setPipeliningFlushPolicy(valueOf(plain, "pipeliningFlushPolicy", PipeliningFlushPolicy.class));
    made.setShareNativeConnection(plain.getShareNativeConnection());
    made.setValidateConnection(plain.getValidateConnection());
    made.setEagerInitialization(plain.getEagerInitialization());
    made.setConvertPipelineAndTxResults(plain.getConvertPipelineAndTxResults());
    made.setPhase(plain.getPhase());
    made.setAutoStartup(plain.isAutoStartup());
    made.setEarlyStartup(plain.isEarlyStartup());
    return made;
  }

  /** What a factory was told and does not tell. */
  private static <T> T valueOf(LettuceConnectionFactory plain, String name, Class<T> type) {
    try {
      Field field = LettuceConnectionFactory.class.getDeclaredField(name);
      field.setAccessible(true);
      return type.cast(field.get(plain));
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw new ConfigurationException(
          "AP501",
          "this version of Spring Data Redis has no LettuceConnectionFactory." + name + ": Antipode was made for 3.5", error);
    }
  }

  /** Without a list of replicas, barriers wait for the server itself, which is known once it is connected to. */
  private static void meet(LettuceConnectionFactory recording, StoreOptions options) {
    try {
      recording.getConnection().close();
    } catch (DataAccessException | IllegalStateException error) {
      for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
        if (cause instanceof AntipodeException ours) {
          throw ours;
        }
      }
      Logs.info(
          "AP507",
          "connect " + options.name(),
          options.name() + ": its server does not answer yet; barriers prove nothing for it before it does");
    }
  }

  /** A factory whose connections are wrapped. */
  private static final class RecordingFactory extends LettuceConnectionFactory {
    private final LettuceWrapping wrapping;

    RecordingFactory(LettuceConnectionFactory plain, RedisStandaloneConfiguration one, LettuceWrapping wrapping) {
      super(one, plain.getClientConfiguration());
      this.wrapping = wrapping;
    }

    RecordingFactory(LettuceConnectionFactory plain, RedisSentinelConfiguration sentinels, LettuceWrapping wrapping) {
      super(sentinels, plain.getClientConfiguration());
      this.wrapping = wrapping;
    }

    @Override
    protected LettuceConnectionProvider doCreateConnectionProvider(AbstractRedisClient client, RedisCodec<?, ?> codec) {
      return new WrappedConnections(super.doCreateConnectionProvider(client, codec), wrapping);
    }
  }

  /** What connects; those of publish and subscribe, and to Sentinels, stay as they are. */
  private record WrappedConnections(LettuceConnectionProvider plain, LettuceWrapping wrapping)
      implements LettuceConnectionProvider, LettuceConnectionProvider.TargetAware {
    @Override
    public <T extends StatefulConnection<?, ?>> T getConnection(Class<T> type) {
      return wrapped(type, plain.getConnection(type));
    }

    @Override
    public <T extends StatefulConnection<?, ?>> CompletionStage<T> getConnectionAsync(Class<T> type) {
      return plain.getConnectionAsync(type).thenApplyAsync(made -> wrapped(type, made)); // it may ask the server
    }

    private <T extends StatefulConnection<?, ?>> T wrapped(Class<T> type, T made) {
      boolean isSubscribing = made instanceof StatefulRedisPubSubConnection<?, ?>;
      if (isSubscribing || !(made instanceof StatefulRedisConnection<?, ?> connection)) {
        return made;
      }
      try {
        return type.cast(wrapping.wrap(connection));
      } catch (RuntimeException refused) {
        made.closeAsync();
        throw refused;
      }
    }

    @Override
    public <T extends StatefulConnection<?, ?>> CompletionStage<T> getConnectionAsync(Class<T> type, RedisURI place) {
      return ((LettuceConnectionProvider.TargetAware) plain).getConnectionAsync(type, place);
    }

    @Override
    public CompletableFuture<Void> releaseAsync(StatefulConnection<?, ?> connection) {
      return plain.releaseAsync(connection);
    }
  }
}
