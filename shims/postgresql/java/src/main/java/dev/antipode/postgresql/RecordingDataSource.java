package dev.antipode.postgresql;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;

/** Beside a DataSource: its connections record. */
final class RecordingDataSource extends Proxies.Handler {
  /** Makes a connection record. */
  @FunctionalInterface
  interface ConnectionWrapper {
    Connection join(Connection plain) throws SQLException;
  }

  private final DataSource plain;
  private final String store;
  private final ConnectionWrapper joining;

  private RecordingDataSource(DataSource plain, String store, ConnectionWrapper joining) {
    super(plain);
    this.plain = plain;
    this.store = store;
    this.joining = joining;
  }

  static DataSource of(DataSource plain, String store, ConnectionWrapper joining) {
    return Proxies.of(DataSource.class, plain, new RecordingDataSource(plain, store, joining));
  }

  /** The store for which a DataSource records, also within others; null for one that does not. */
  static String storeOf(DataSource source) {
    Proxies.StandIn recording = Proxies.inside(source, Proxies.StandIn.class);
    return recording != null && Proxy.getInvocationHandler(recording) instanceof RecordingDataSource own ? own.store : null;
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

  /** Only what is asked for as a DataSource stands for one: of a pool's other interfaces people make its class again. */
  @Override
  Object unwrapped(Object proxy, Class<?> wanted, Method method, Object[] args) throws Throwable {
    boolean isSource = wanted.isAssignableFrom(DataSource.class) || DataSource.class.isAssignableFrom(wanted);
    return isSource || wanted == Proxies.StandIn.class || !wanted.isInstance(plain)
        ? super.unwrapped(proxy, wanted, method, args)
        : plain;
  }

  private Connection joined(Connection connection) throws SQLException {
    if (Parts.isLazy(plain)) {
      return LazyConnection.of(connection, joining);
    }
    try {
      return joining.join(connection);
    } catch (SQLException | RuntimeException error) {
      connection.close();
      throw error;
    }
  }
}
