package dev.antipode.postgresql;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.util.Set;

/** A connection that reaches a server with its first statement: not before does it record (SHIM-50). */
final class LazyConnection extends Proxies.Handler {
  /** What it does without a server. */
  private static final Set<String> BEFORE = Set.of(
      "setReadOnly", "isReadOnly", "setAutoCommit", "getAutoCommit", "setTransactionIsolation", "getTransactionIsolation",
      "setHoldability", "getHoldability", "commit", "rollback", "getWarnings", "clearWarnings", "isClosed", "close", "toString");

  private final Connection plain;
  private final RecordingDataSource.ConnectionWrapper joining;
  private Connection joined; // null as long as no server is reached

  private LazyConnection(Connection plain, RecordingDataSource.ConnectionWrapper joining) {
    super(plain);
    this.plain = plain;
    this.joining = joining;
  }

  static Connection of(Connection plain, RecordingDataSource.ConnectionWrapper joining) {
    return Proxies.of(Connection.class, plain, new LazyConnection(plain, joining));
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    return joined == null && BEFORE.contains(method.getName()) ? plainly(method, args) : reached(method, args);
  }

  @Override
  Object inside(Class<?> wanted, Method method, Object[] args) throws Throwable {
    return reached(method, args);
  }

  private Object reached(Method method, Object[] args) throws Throwable {
    if (joined == null) {
      joined = joining.join(plain);
    }
    try {
      return method.invoke(joined, args);
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause();
    }
  }
}
