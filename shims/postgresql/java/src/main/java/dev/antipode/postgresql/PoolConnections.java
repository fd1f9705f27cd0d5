package dev.antipode.postgresql;

import dev.antipode.shim.Logs;
import java.lang.reflect.Field;
import java.sql.Wrapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.postgresql.core.BaseConnection;

/** The connections that a DataSource's pools hold, handed out or not, by the fields they are in: none tells (BAR-68). */
final class PoolConnections {
  // Tomcat's busy ones first: one that is given back between the two looks is found among the idle ones.
  /** By a pool's class: the ways to its connections, from field to field, through all that a collection on the way holds. */
  private static final Map<String, List<String>> WAYS = Map.of(
      "com.zaxxer.hikari.HikariDataSource", List.of("pool.connectionBag.sharedList.connection"),
      "org.apache.tomcat.jdbc.pool.DataSourceProxy", List.of("pool.busy.connection", "pool.idle.connection"),
      "org.apache.commons.dbcp2.BasicDataSource", List.of("connectionPool.allObjects.object"),
      "org.apache.commons.dbcp2.PoolingDataSource", List.of("pool.allObjects.object"),
      "org.apache.tomcat.dbcp.dbcp2.BasicDataSource", List.of("connectionPool.allObjects.object"),
      "org.apache.tomcat.dbcp.dbcp2.PoolingDataSource", List.of("pool.allObjects.object"));

  private static final ClassValue<List<String>> OF_CLASS = new ClassValue<>() {
    @Override
    protected List<String> computeValue(Class<?> type) {
      return Stream.<Class<?>>iterate(type, Objects::nonNull, Class::getSuperclass)
          .map(each -> WAYS.getOrDefault(each.getName(), List.of()))
          .filter(ways -> !ways.isEmpty())
          .findFirst()
          .orElse(List.of());
    }
  };

  private static final ClassValue<Map<String, Optional<Field>>> FIELDS = new ClassValue<>() {
    @Override
    protected Map<String, Optional<Field>> computeValue(Class<?> type) {
      return new ConcurrentHashMap<>();
    }
  };

  private final List<DataSource> sources;

  /** Those of some DataSources, and of what is inside these. */
  PoolConnections(List<DataSource> sources) {
    this.sources = sources;
  }

  /** Return whether there is a pool whose connections can be looked at. */
  boolean areOfPool() {
    return pools().findAny().isPresent();
  }

  /** Return all that are open. */
  List<BaseConnection> all() {
    return pools()
        .flatMap(pool -> OF_CLASS.get(pool.getClass()).stream().flatMap(way -> at(pool, way)))
        .map(connection -> Proxies.physical((Wrapper) connection))
        .filter(Objects::nonNull)
        .toList();
  }

  private Stream<Object> pools() {
    return sources.stream()
        .flatMap(each -> Leads.chain(each).stream())
        .filter(each -> !OF_CLASS.get(each.getClass()).isEmpty());
  }

  private static Stream<?> at(Object pool, String way) {
    Stream<?> found = Stream.of(pool);
    for (String name : way.split("\\.")) {
      found = found.flatMap(each -> all(valueOf(each, name)));
    }
    return found;
  }

  private static Stream<?> all(Object value) {
    if (!(value instanceof Map || value instanceof Collection)) {
      return Stream.ofNullable(value);
    }
    List<Object> found = new ArrayList<>(); // Tomcat's queue has an iterator alone
    (value instanceof Map<?, ?> map ? map.values() : (Collection<?>) value).forEach(found::add);
    return found.stream();
  }

  private static Object valueOf(Object holder, String name) {
    Map<String, Optional<Field>> fields = FIELDS.get(holder.getClass());
    Optional<Field> known = fields.get(name);
    Optional<Field> field = known != null ? known : fields.computeIfAbsent(name, first -> field(holder.getClass(), name));
    try {
      return field.isEmpty() ? null : field.get().get(holder);
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error); // it was made accessible
    }
  }

  private static Optional<Field> field(Class<?> type, String name) {
    Optional<Field> found = Stream.<Class<?>>iterate(type, Objects::nonNull, Class::getSuperclass)
        .flatMap(each -> Arrays.stream(each.getDeclaredFields()))
        .filter(field -> field.getName().equals(name) && field.trySetAccessible())
        .findFirst();
    if (found.isEmpty()) { // another version of it, or a module that is closed
      Logs.warn(
          "AP501",
          "pool " + type.getName(),
          "wrap: the connections that a pool holds cannot be looked at, and count when they are handed out: " + type.getName()
              + "." + name + " cannot be read (on a module path, open it by --add-opens)");
    }
    return found;
  }
}
