package dev.antipode.postgresql;

import java.lang.reflect.Method;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Savepoint;
import java.sql.Statement;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.QueryExecutor;
import org.postgresql.fastpath.Fastpath;
import org.postgresql.largeobject.LargeObjectManager;

/** Beside a connection: its statements record, and its commits carry the question for their position. */
final class RecordingConnection extends Proxies.Handler {
  private final Connection plain;
  private final Flow flow;
  private Object driversOwn; // made when the application asks for the driver's own interfaces
  private CopyManager copying;
  private Fastpath fastpath;
  private LargeObjectManager largeObjects;

  private RecordingConnection(Connection plain, Flow flow) {
    super(plain);
    this.plain = plain;
    this.flow = flow;
  }

  /** A connection that shares everything with a plain one, and records. */
  static Connection of(Connection plain, Flow flow) {
    return Proxies.of(Connection.class, plain, new RecordingConnection(plain, flow));
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    switch (method.getName()) {
      case "createStatement":
        return RecordingStatement.of(Statement.class, (Statement) plainly(method, args), null, (Connection) proxy, flow);
      case "prepareStatement":
        return RecordingStatement.of(
            PreparedStatement.class,
            (PreparedStatement) plainly(method, args),
            (String) args[0],
            (Connection) proxy,
            flow);
      case "prepareCall":
        return RecordingStatement.of(
            CallableStatement.class,
            (CallableStatement) plainly(method, args),
            (String) args[0],
            (Connection) proxy,
            flow);
      case "commit":
        flow.commit(() -> plainly(method, args));
        return null;
      case "rollback":
        if (args != null && args.length == 1 && args[0] instanceof Savepoint) {
          return flow.run(Kind.SESSION, null, false, () -> plainly(method, args));
        }
        flow.rollback(() -> plainly(method, args));
        return null;
      case "setAutoCommit":
        flow.setAutoCommit((Boolean) args[0], () -> plainly(method, args));
        return null;
      case "close":
        if (plain.isClosed()) {
          return plainly(method, args);
        }
        return flow.close(plain == flow.physical(), () -> plainly(method, args));
      case "abort":
        flow.aborted();
        return plainly(method, args);
      case "getMetaData":
        return Catalogue.of((DatabaseMetaData) plainly(method, args), (Connection) proxy, flow);
      case "toString":
        return "recording " + plain;
      default:
        return driversOwn(proxy, method, args);
    }
  }

  /** Its closed connection gives nothing out, as the driver's own. */
  @Override
  Object unwrapped(Object proxy, Class<?> wanted, Method method, Object[] args) throws Throwable {
    if (wanted.isInstance(plain)) {
      plainly(method, args);
    }
    return super.unwrapped(proxy, wanted, method, args);
  }

  private Object driversOwn(Object proxy, Method method, Object[] args) throws Throwable {
    if (!(proxy instanceof BaseConnection base)) {
      return plainly(method, args);
    }
    switch (method.getName()) {
      case "getCopyAPI":
        if (copying == null) {
          copying = new CopyManager(base);
        }
        return copying;
      case "getFastpathAPI":
        if (fastpath == null) {
          fastpath = new Fastpath(base);
        }
        return fastpath;
      case "getLargeObjectAPI":
        if (largeObjects == null) {
          largeObjects = new LargeObjectManager(base);
        }
        return largeObjects;
      case "getQueryExecutor":
        return RecordingExecutor.of((QueryExecutor) plainly(method, args), flow);
      case "execSQLUpdate", "execSQLQuery":
        return directly(proxy, method, args);
      default:
        return plainly(method, args);
    }
  }

  /** A text that is sent without a statement of the application's. */
  private Object directly(Object proxy, Method method, Object[] args) throws Throwable {
    String sent = (String) args[0];
    Kind kind = flow.binding().classify(sent);
    boolean several = Statements.mayCommitWithin(kind, sent);
    Object result = Reads.around(
        Reads.told(flow, kind, sent), kind, sent, () -> flow.run(kind, sent, several, () -> plainly(method, args)));
    flow.moments().done(sent);
    int first = flow.physical().getAutoCommit() ? 0 : flow.physical().getDefaultFetchSize();
    if (!(result instanceof ResultSet rows)) {
      return result;
    }
    ResultSet recorded = first > 0 ? PartialResult.of(rows, flow, flow.moments().now(), first) : rows;
    return Rows.of(recorded, null, (Connection) proxy, flow);
  }

  /** The driver's own interfaces record, too; its classes are the way round the shim. */
  @Override
  Object inside(Class<?> wanted, Method method, Object[] args) throws Throwable {
    if (wanted != PGConnection.class && wanted != BaseConnection.class) {
      return super.inside(wanted, method, args);
    }
    if (driversOwn == null) {
      Connection inner = flow.physical();
      driversOwn = Proxies.of(Connection.class, inner, new RecordingConnection(inner, flow));
    }
    return driversOwn;
  }
}
