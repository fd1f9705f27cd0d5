package dev.antipode.postgresql;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import java.lang.reflect.Method;
import java.util.Collections;
import org.postgresql.copy.CopyOperation;
import org.postgresql.core.QueryExecutor;

/** Beside the driver's executor, for COPY and the functions of large objects, which go past statements. */
final class RecordingExecutor extends Proxies.Handler {
  // The same in every server: they are in its catalogue from the beginning.
  private static final int LO_OPEN = 952;
  private static final int LOREAD = 954;
  private static final String ROWS =
      "more rows of a COPY that was begun before what it has to show was there: begin another one";
  private static final String OBJECT = "a large object that was opened before what has to be shown was there: open it anew";

  private final Flow flow;

  private RecordingExecutor(QueryExecutor plain, Flow flow) {
    super(plain);
    this.flow = flow;
  }

  static QueryExecutor of(QueryExecutor plain, Flow flow) {
    return Proxies.of(QueryExecutor.class, plain, new RecordingExecutor(plain, flow));
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    switch (method.getName()) {
      case "fastpathCall":
        int function = (Integer) args[0];
        if (function == LOREAD) {
          flow.moments().objects().forEach(each -> Reads.fetches(flow, each, OBJECT));
        }
        Object value = Reads.around(
            Reads.told(flow, Kind.MAYBE, null),
            Kind.MAYBE,
            null,
            () -> flow.run(Kind.MAYBE, null, false, () -> plainly(method, args)));
        if (function == LO_OPEN) {
          flow.moments().objectOpened();
        }
        return value;
      case "startCopy":
        Kind kind = flow.binding().classify((String) args[0]);
        String sent = (String) args[0];
        Copy copy = new Copy(flow, kind);
        return Reads.around( // which writes it shows nobody knows, whenever its rows come
            Reads.told(flow, kind, sent),
            kind,
            sent,
            () -> flow.together(() -> copy.start(() -> (CopyOperation) plainly(method, args))));
      default:
        return plainly(method, args);
    }
  }

  /** One COPY, from its beginning to its end. */
  private record Copy(Flow flow, Kind kind) {
    CopyOperation start(Flow.Call<CopyOperation> begin) throws Throwable {
      if (!flow.binding().refreshed().records()) {
        return begin.run();
      }
      flow.begins(kind, null);
      CopyOperation operation = flow.guarded(Kind.WRITE, begin);
      if (kind.mayWrite()) {
        flow.steps().copies(operation);
      }
      return Proxies.of(
          CopyOperation.class, operation,
          kind.mayWrite() ? new RunningStatement(operation, flow) : new CopyRows(operation, flow));
    }
  }

  /** Rows that come one by one, all of the moment at which the COPY began (SHIM-48). */
  private static final class CopyRows extends Proxies.Handler {
    private final Flow flow;
    private final Lineage moment;

    CopyRows(CopyOperation plain, Flow flow) {
      super(plain);
      this.flow = flow;
      this.moment = flow.moments().now();
    }

    @Override
    Object call(Object proxy, Method method, Object[] args) throws Throwable {
      if (method.getName().equals("readFromCopy")) {
        Reads.fetches(flow, moment, ROWS);
      }
      return plainly(method, args);
    }
  }

  private static final class RunningStatement extends Proxies.Handler {
    private final Flow flow;
    private final Lineage moment;

    RunningStatement(CopyOperation plain, Flow flow) {
      super(plain);
      this.flow = flow;
      this.moment = flow.moments().now();
    }

    @Override
    Object call(Object proxy, Method method, Object[] args) throws Throwable {
      return flow.steps().part(() -> goesOn(method, args));
    }

    private Object goesOn(Method method, Object[] args) throws Throwable {
      switch (method.getName()) {
        case "endCopy":
          flow.joinExecutor();
          Object rows = flow.guarded(Kind.WRITE, () -> plainly(method, args));
          flow.finished(Kind.MAYBE, false);
          return rows;
        case "cancelCopy":
          plainly(method, args);
          flow.cancelled();
          return null;
        case "writeToCopy", "flushCopy":
          flow.joinScopes(Collections.singleton(LineageScope.current()));
          return flow.guarded(Kind.WRITE, () -> plainly(method, args));
        case "readFromCopy":
          Reads.fetches(flow, moment, ROWS);
          Object row = flow.guarded(Kind.WRITE, () -> plainly(method, args));
          if (row == null) { // its end
            flow.finished(Kind.MAYBE, false);
          }
          return row;
        default:
          return plainly(method, args);
      }
    }
  }
}
