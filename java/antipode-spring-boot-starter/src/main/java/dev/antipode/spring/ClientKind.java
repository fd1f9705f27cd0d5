package dev.antipode.spring;

import dev.antipode.StoreOptions;
import dev.antipode.postgresql.AntipodePostgres;
import dev.antipode.redis.AntipodeRedis;
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
}
