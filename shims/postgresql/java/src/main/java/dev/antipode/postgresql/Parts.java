package dev.antipode.postgresql;

import java.sql.Connection;
import java.sql.SQLException;
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

  /** Opens a connection of one part. */
  @FunctionalInterface
  interface Part {
    Connection open() throws SQLException;
  }

  /** Return the parts: those of Spring's routing and lazy DataSources; of any other the one that it is. */
  static List<Part> of(DataSource source) {
    if (Credentials.asked(source, "getResolvedDataSources") instanceof Map<?, ?> routes) {
      Set<Object> all = Collections.newSetFromMap(new IdentityHashMap<>());
      all.addAll(routes.values());
      all.add(Credentials.asked(source, "getResolvedDefaultDataSource"));
      List<Part> parts = new ArrayList<>();
      for (Object each : all) {
        if (Proxies.plain(each) instanceof DataSource route) {
          parts.addAll(of(route));
        }
      }
      return parts;
    }
    return isLazy(source) ? List.of(source::getConnection, () -> openReadOnly(source)) : List.of(source::getConnection);
  }

  /** Return whether its connections reach a server with their first statement, and until then choose which. */
  static boolean isLazy(DataSource source) {
    Class<?> type = source.getClass();
    while (type != null && !type.getName().equals(LAZY)) {
      type = type.getSuperclass();
    }
    return type != null;
  }

  private static Connection openReadOnly(DataSource source) throws SQLException {
    Connection connection = source.getConnection();
    connection.setReadOnly(true);
    return connection;
  }
}
