package dev.antipode.postgresql;

import java.lang.reflect.Method;
import java.sql.Blob;
import java.sql.Clob;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.Set;

/** Beside a result that has large objects: the driver reads and writes these by itself, on the plain connection (SHIM-50). */
final class Blobs extends Proxies.Handler {
  private static final Set<String> WRITES =
      Set.of("setBytes", "setBinaryStream", "setString", "setAsciiStream", "setCharacterStream", "truncate");

  private static final int DIGITS = 10; // of an oid, which has no sign

  private final Flow flow;

  private Blobs(ResultSet plain, Flow flow) {
    super(plain);
    this.flow = flow;
  }

  /** Return whether a result has them: columns of the type by which the server names one. They live in transactions alone. */
  static boolean areIn(ResultSet rows, Flow flow) throws SQLException {
    if (flow.physical().getAutoCommit()) {
      return false;
    }
    ResultSetMetaData columns = rows.getMetaData();
    for (int column = 1; column <= columns.getColumnCount(); column++) {
      boolean isNumber = !columns.isSigned(column) && !columns.isCaseSensitive(column);
      if (isNumber && columns.getPrecision(column) == DIGITS) { // its name would be asked of the server
        return true;
      }
    }
    return false;
  }

  /** Stands for a result whose large objects record what they write, and wait before they read. */
  static ResultSet of(ResultSet plain, Flow flow) {
    return Proxies.of(ResultSet.class, plain, new Blobs(plain, flow));
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    Object value = plainly(method, args);
    return value instanceof Blob blob ? Proxies.of(Blob.class, blob, new Content(blob, flow))
        : value instanceof Clob clob ? Proxies.of(Clob.class, clob, new Content(clob, flow))
            : method.getName().equals("toString") ? "large objects of " + value : value;
  }

  /** One large object. */
  private static final class Content extends Proxies.Handler {
    private final Flow flow;

    Content(Object plain, Flow flow) {
      super(plain);
      this.flow = flow;
    }

    @Override
    Object call(Object proxy, Method method, Object[] args) throws Throwable {
      if (method.getName().equals("free") || method.getName().equals("toString")) {
        return plainly(method, args);
      }
      return WRITES.contains(method.getName())
          ? flow.run(Kind.WRITE, null, false, () -> plainly(method, args)) // a stream writes later: the commit covers it
          : Reads.around(flow, Kind.READ, null, () -> plainly(method, args));
    }
  }
}
