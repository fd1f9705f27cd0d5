package dev.antipode.postgresql;

import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.util.Set;

/** What the driver reads in the server's catalogue by itself: it waits, and is covered, as any read (SHIM-44). */
final class Catalogue {
  /** It may read any of the catalogue's tables, and none of the application's. */
  private static final String TEXT = "SELECT FROM pg_catalog.pg_class";

  /** What a result's columns do not know until the server is asked. */
  private static final Set<String> ASKED =
      Set.of(
          "getBaseColumnName",
          "getBaseSchemaName",
          "getBaseTableName",
          "getColumnTypeName", // of a number that counts by itself, it is another
          "getTableName",
          "isAutoIncrement",
          "isNullable");

  private Catalogue() {}

  /** Runs a call in which the driver asks: in the application's transaction, if there is one. */
  static <T> T read(Flow flow, Flow.Call<T> call) throws Throwable {
    return Reads.around(flow, Kind.READ, TEXT, () -> flow.run(Kind.READ, TEXT, false, call));
  }

  /** Stands for what tells of a database. */
  static DatabaseMetaData of(DatabaseMetaData plain, Connection connection, Flow flow) {
    return Proxies.of(DatabaseMetaData.class, plain, new Proxies.Handler(plain) {
      @Override
      Object call(Object proxy, Method method, Object[] args) throws Throwable {
        if (method.getName().equals("getConnection")) {
          return connection;
        }
        if (method.getReturnType() != ResultSet.class) {
          return plainly(method, args);
        }
        return Rows.of((ResultSet) read(flow, () -> plainly(method, args)), null, connection, flow);
      }
    });
  }

  /** Stands for what tells of a result's columns; null where a statement gives none. */
  static ResultSetMetaData of(ResultSetMetaData plain, Flow flow) {
    return plain == null ? null : Proxies.of(ResultSetMetaData.class, plain, new Proxies.Handler(plain) {
      @Override
      Object call(Object proxy, Method method, Object[] args) throws Throwable {
        return ASKED.contains(method.getName()) ? read(flow, () -> plainly(method, args)) : plainly(method, args);
      }
    });
  }
}
