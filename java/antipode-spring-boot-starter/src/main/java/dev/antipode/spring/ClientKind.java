package dev.antipode.spring;

import com.rabbitmq.client.Connection;
import dev.antipode.StoreOptions;
import dev.antipode.postgresql.AntipodePostgres;
import dev.antipode.rabbitmq.AntipodeRabbit;
import dev.antipode.rabbitmq.RabbitOptions;
import dev.antipode.redis.AntipodeLettuce;
import dev.antipode.redis.AntipodeRedis;
import io.lettuce.core.api.StatefulRedisConnection;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.sql.DataSource;
import org.springframework.util.ClassUtils;
import redis.clients.jedis.UnifiedJedis;

/** A kind of client that can be wrapped. */
interface ClientKind {
  /** Round this bean, or null where it is of another kind. */
  Object wrap(Object bean, StoreOptions options);

  /** The kinds for which shim and client are on the class path, by their names. */
  static Map<String, ClientKind> present(ClassLoader loader) {
    Map<String, ClientKind> kinds = new LinkedHashMap<>();
    if (ClassUtils.isPresent("dev.antipode.postgresql.AntipodePostgres", loader)) {
      kinds.put("a javax.sql.DataSource", new Postgresql());
    }
    // A shim may be there without each of its clients.
    if (ClassUtils.isPresent("dev.antipode.redis.AntipodeRedis", loader)
        && ClassUtils.isPresent("redis.clients.jedis.UnifiedJedis", loader)) {
      kinds.put("a redis.clients.jedis.UnifiedJedis", new Jedis());
    }
    if (ClassUtils.isPresent("dev.antipode.redis.AntipodeLettuce", loader)
        && ClassUtils.isPresent("io.lettuce.core.api.StatefulRedisConnection", loader)) {
      kinds.put("an io.lettuce.core.api.StatefulRedisConnection", new Lettuce());
      if (ClassUtils.isPresent("org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory", loader)) {
        kinds.put("a LettuceConnectionFactory of Spring Data Redis", new SpringRedis());
      }
    }
    if (ClassUtils.isPresent("dev.antipode.rabbitmq.AntipodeRabbit", loader)
        && ClassUtils.isPresent("com.rabbitmq.client.Connection", loader)) {
      kinds.put("a com.rabbitmq.client.Connection", new Rabbit());
      if (ClassUtils.isPresent("org.springframework.amqp.rabbit.config.AbstractRabbitListenerContainerFactory", loader)) {
        kinds.put("a ConnectionFactory or a listener container factory of Spring AMQP", new SpringAmqp());
      }
    }
    return kinds;
  }

  // Each a class of its own: one that is never made does not look for its shim.

  /** {@code antipode-postgresql}. */
  final class Postgresql implements ClientKind {
    @Override
    public Object wrap(Object bean, StoreOptions options) {
      return bean instanceof DataSource source ? AntipodePostgres.wrap(source, options) : null;
    }
  }

  /** {@code antipode-redis} with Jedis. */
  final class Jedis implements ClientKind {
    @Override
    public Object wrap(Object bean, StoreOptions options) {
      return bean instanceof UnifiedJedis client ? AntipodeRedis.wrap(client, options) : null;
    }
  }

  /** {@code antipode-redis} with Lettuce. */
  final class Lettuce implements ClientKind {
    @Override
    public Object wrap(Object bean, StoreOptions options) {
      return bean instanceof StatefulRedisConnection<?, ?> connection ? AntipodeLettuce.wrap(connection, options) : null;
    }
  }

  /** {@code antipode-rabbitmq} with its client alone. */
  final class Rabbit implements ClientKind {
    @Override
    public Object wrap(Object bean, StoreOptions options) {
      return bean instanceof Connection connection ? AntipodeRabbit.wrap(connection, RabbitOptions.of(options)) : null;
    }
  }
}
