package dev.antipode.postgresql;

import dev.antipode.LineageScope;
import java.lang.reflect.Method;
import java.util.Collections;
import org.postgresql.copy.CopyOperation;
import org.postgresql.core.QueryExecutor;

/** Beside the driver's executor, for COPY and the functions of large objects, which go past statements. */
final class RecordingExecutor extends Proxies.Handler {
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
        return NotedStatement.around(
            flow,
            NotedStatement.ANYTHING,
            () -> Reads.around(flow, Kind.MAYBE, () -> flow.run(Kind.MAYBE, false, () -> plainly(method, args))));
      case "startCopy":
        Kind kind = flow.binding().classify((String) args[0]);
        Copy copy = new Copy(flow, kind);
        return NotedStatement.around( // which writes it shows nobody knows, whenever its rows come
            flow,
            (String) args[0],
            () -> Reads.around(flow, kind, () -> copy.start(() -> (CopyOperation) plainly(method, args))));
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
      flow.begins(kind);
      CopyOperation operation = flow.guarded(Kind.WRITE, begin);
      return kind.mayWrite() ? Proxies.of(CopyOperation.class, operation, new Running(operation, flow)) : operation;
    }
  }

  private static final class Running extends Proxies.Handler {
    private final Flow flow;

    Running(CopyOperation plain, Flow flow) {
      super(plain);
      this.flow = flow;
    }

    @Override
    Object call(Object proxy, Method method, Object[] args) throws Throwable {
      switch (method.getName()) {
        case "endCopy":
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
