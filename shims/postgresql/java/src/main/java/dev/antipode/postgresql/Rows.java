package dev.antipode.postgresql;

import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.Statement;

/** A result whose statement records, and by it the connection; so do those of cursors that are among its values (SHIM-50). */
final class Rows extends Proxies.Handler {
  private final Statement own; // null where the driver has made it by itself
  private final Connection connection;
  private final Flow flow;

  private Rows(ResultSet plain, Statement own, Connection connection, Flow flow) {
    super(plain);
    this.own = own;
    this.connection = connection;
    this.flow = flow;
  }

  /** Stands for a result; {@code own}: the statement that gave it, null where that is one of the driver's. */
  static ResultSet of(ResultSet plain, Statement own, Connection connection, Flow flow) {
    return Proxies.of(ResultSet.class, plain, new Rows(plain, own, connection, flow));
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    Object value = plainly(method, args);
    if (value instanceof Statement made) {
      return own == null ? RecordingStatement.of(Statement.class, made, null, connection, flow) : own;
    }
    if (value instanceof ResultSetMetaData columns) {
      return Catalogue.of(columns, flow);
    }
    return value instanceof ResultSet inner ? of(inner, null, connection, flow) : value;
  }
}
