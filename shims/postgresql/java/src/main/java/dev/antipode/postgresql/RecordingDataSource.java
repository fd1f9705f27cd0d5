package dev.antipode.postgresql;

import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;

/** Beside a DataSource: its connections record. */
final class RecordingDataSource extends Proxies.Handler {
  /** Makes a connection record. */
  @FunctionalInterface
  interface Joining {
    Connection join(Connection plain) throws SQLException;
  }

  private final DataSource plain;
  private final Joining joining;

  private RecordingDataSource(DataSource plain, Joining joining) {
    super(plain);
    this.plain = plain;
    this.joining = joining;
  }

  static DataSource of(DataSource plain, Joining joining) {
    return Proxies.of(DataSource.class, plain, new RecordingDataSource(plain, joining));
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    switch (method.getName()) {
      case "getConnection":
        return joined((Connection) plainly(method, args));
      case "toString":
        return "recording " + plain;
      default:
        return plainly(method, args);
    }
  }

  private Connection joined(Connection connection) throws SQLException {
    try {
      return joining.join(connection);
    } catch (SQLException | RuntimeException error) {
      connection.close();
      throw error;
    }
  }
}
