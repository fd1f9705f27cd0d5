package dev.antipode.postgresql;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.sql.DataSource;

/** What a DataSource chooses among for each connection: all of it are servers of its store (SHIM-50). */
final class Parts {
  private static final String LAZY = "org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy";

  private Parts() {}

  /** Return the parts: those of Spring's routing and lazy DataSources, which may be in each other; else the one that it is. */
  static List<DataSource> of(DataSource source) {
    Set<Object> inside = Collections.newSetFromMap(new IdentityHashMap<>());
    if (Credentials.asked(source, "getResolvedDataSources") instanceof Map<?, ?> routes) {
      inside.addAll(routes.values());
      inside.add(Credentials.asked(source, "getResolvedDefaultDataSource"));
    } else if (isLazy(source)) {
      inside.add(Credentials.asked(source, "getTargetDataSource"));
      inside.add(readOnly(source));
    }
    List<DataSource> parts = new ArrayList<>();
    for (Object each : inside) {
      if (Proxies.plain(each) instanceof DataSource part) {
        parts.addAll(of(part));
      }
    }
    return parts.isEmpty() ? List.of(source) : parts;
  }

  /** Return whether its connections reach a server with their first statement, and until then choose which. */
  static boolean isLazy(DataSource source) {
    return lazyTypeOf(source) != null;
  }

  private static Class<?> lazyTypeOf(DataSource source) {
    Class<?> type = source.getClass();
    while (type != null && !type.getName().equals(LAZY)) {
      type = type.getSuperclass();
    }
    return type;
  }

  /** Return where its transactions that only read go; null where they go where all do. Spring has no getter of it. */
  private static Object readOnly(DataSource source) {
    try {
      Field field = lazyTypeOf(source).getDeclaredField("readOnlyDataSource");
      return field.trySetAccessible() ? field.get(source) : null;
    } catch (NoSuchFieldException | IllegalAccessException error) {
      return null; // an older Spring sends them where all go
    }
  }
}
