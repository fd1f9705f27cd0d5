package dev.antipode.postgresql;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Beside a statement: what may write is pending, and settled where its transaction ends. */
final class RecordingStatement extends Proxies.Handler {
  private final Statement plain;
  private final String text;
  private final Connection connection;
  private final Flow flow;
  private Kind batch = Kind.READ;
  private final Set<LineageScope> batchScopes = new HashSet<>(2); // of those that added what may write
  private boolean batchReads; // what it may write
  private boolean batchImports; // a snapshot
  private String batchPrepares; // a text of the batch that may prepare its transaction
  private String last; // what gave the rows that are there
  private Lineage moment = Lineage.EMPTY; // that these are of
  private Moments.CursorMoments given = Moments.CursorMoments.NONE; // the cursors whose names they may hold
  private int firstRows; // of a result that is fetched in parts, those that come at once; 0: all do
  private Statement own; // what stands for it

  private RecordingStatement(Statement plain, String text, Connection connection, Flow flow) {
    super(plain);
    this.plain = plain;
    this.text = text;
    this.connection = connection;
    this.flow = flow;
  }

  /** A statement of a recording connection; {@code text} is that of a prepared one, else null. */
  static <S extends Statement> S of(Class<S> type, S plain, String text, Connection connection, Flow flow) {
    RecordingStatement handler = new RecordingStatement(plain, text, connection, flow);
    S own = Proxies.of(type, plain, handler);
    handler.own = own;
    return own;
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    switch (method.getName()) {
      case "execute", "executeQuery", "executeUpdate", "executeLargeUpdate", "executeWithFlags":
        String sent = args != null && args.length > 0 && args[0] instanceof String own ? own : text;
        last = sent;
        return executed(flow.binding().classify(sent), sent, method, args);
      case "executeBatch", "executeLargeBatch":
        return batched(method, args);
      case "addBatch":
        addToBatch(args == null ? text : (String) args[0]);
        return plainly(method, args);
      case "clearBatch":
        clearBatch();
        return plainly(method, args);
      case "getConnection":
        return connection;
      case "getResultSet", "getGeneratedKeys":
        return recording(plainly(method, args));
      case "getMetaData":
        return Catalogue.of((ResultSetMetaData) Catalogue.read(flow, () -> plainly(method, args)), flow);
      case "getParameterMetaData":
        return Catalogue.read(flow, () -> plainly(method, args));
      case "toString":
        return plain.toString();
      default:
        Object result = plainly(method, args);
        if (method.getName().equals("getObject")) {
          Object value = RefCursors.called(result, flow, given);
          return value instanceof ResultSet rows ? Rows.of(rows, null, connection, flow) : value;
        }
        return result;
    }
  }

  private Object executed(Kind kind, String sent, Method method, Object[] args) throws Throwable {
    Reads read = Reads.told(flow, kind, sent);
    if (read == null) {
      return flow.together(() -> sent(kind, sent, null, method, args)); // its moment is not another thread's
    }
    try {
      read.await(sent);
      return flow.together(() -> sent(kind, sent, read, method, args));
    } finally {
      read.close();
    }
  }

  private Object sent(Kind kind, String sent, Reads read, Method method, Object[] args) throws Throwable {
    firstRows = flow.physical().getAutoCommit() ? 0 : plain.getFetchSize();
    Object result = flow.run(kind, sent, Statements.mayCommitWithin(kind, sent), () -> plainly(method, args));
    moment = flow.moments().now();
    given = flow.moments().given();
    flow.moments().done(sent);
    if (read != null) {
      if (Statements.showsData(kind, sent)) {
        read.cover(result instanceof ResultSet rows ? rows : null, plain);
      }
      read.finish();
    }
    return recording(result);
  }

  private void clearBatch() {
    batch = Kind.READ;
    batchScopes.clear();
    batchReads = batchImports = false;
    batchPrepares = null;
  }

  private Object batched(Method method, Object[] args) throws Throwable {
    Kind all = batch;
    List<LineageScope> scopes = List.copyOf(batchScopes);
    boolean reads = batchReads;
    boolean imports = batchImports;
    String prepares = batchPrepares;
    clearBatch();
    Flow.Call<Object> sending = () -> flow.run(all, prepares, true, () -> {
      flow.joinScopes(scopes);
      return plainly(method, args);
    });
    Object counts = reads ? Reads.around(flow, Kind.MAYBE, null, sending) : sending.run();
    if (imports) {
      flow.moments().imported();
    }
    return counts;
  }

  private void addToBatch(String sent) {
    Kind kind = flow.binding().classify(sent);
    batchReads |= kind.mayRead(sent);
    batchImports |= Moments.imports(sent);
    if (PreparedWrites.mayPrepare(sent)) {
      batchPrepares = sent;
    }
    if (kind == Kind.READ) {
      return;
    }
    if (LineageScope.current() != null) {
      batchScopes.add(LineageScope.current());
    }
    if (batch == Kind.MAYBE) {
      return;
    }
    batch = kind == Kind.WRITE ? Kind.WRITE : Kind.MAYBE;
  }

  /** Rows that can be changed in place write, and read again; those that are fetched in parts may be too old by then. */
  private Object recording(Object result) throws SQLException {
    if (!(result instanceof ResultSet rows) || rows.isClosed()) {
      return result;
    }
    boolean mayHaveCursors = last != null && RefCursors.mayBeIn(flow.binding().classify(last), last);
    ResultSet named = mayHaveCursors ? RefCursors.of(rows, flow, given) : rows;
    ResultSet plainRows = Blobs.areIn(rows, flow) ? Blobs.of(named, flow) : named;
    ResultSet recorded = rows.getConcurrency() == ResultSet.CONCUR_UPDATABLE ? updatable(plainRows) : plainRows;
    boolean isInParts = firstRows > 0 && rows.getType() == ResultSet.TYPE_FORWARD_ONLY;
    return Rows.of(isInParts ? PartialResult.of(recorded, flow, moment, firstRows) : recorded, own, connection, flow);
  }

  private ResultSet updatable(ResultSet rows) {
    String sent = last;
    return Proxies.of(ResultSet.class, rows, new Proxies.Handler(rows) {
      @Override
      Object call(Object proxy, Method method, Object[] args) throws Throwable {
        return switch (method.getName()) {
          case "insertRow", "updateRow", "deleteRow" -> flow.run(Kind.WRITE, null, false, () -> plainly(method, args));
          case "refreshRow" -> Reads.around(
              Reads.told(flow, Kind.READ, sent), Kind.READ, null, () -> plainly(method, args));
          case "toString" -> rows.toString();
          default -> plainly(method, args);
        };
      }
    });
  }
}
