package dev.antipode.postgresql;

import java.lang.reflect.Method;
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
            flow, NotedStatement.ANYTHING, () -> flow.run(Kind.MAYBE, false, () -> plainly(method, args)));
      case "startCopy":
        Copy copy = new Copy(flow, Statements.classify((String) args[0]));
        return NotedStatement.around( // which writes it shows nobody knows, whenever its rows come
            flow, (String) args[0], () -> copy.start(() -> (CopyOperation) plainly(method, args)));
      default:
        return plainly(method, args);
    }
  }

  /** One COPY, from its beginning to its end. */
  private record Copy(Flow flow, Kind kind) {
    CopyOperation start(Flow.Call<CopyOperation> begin) throws Throwable {
      CopyOperation operation = flow.startCopy(kind, begin);
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
          return flow.endCopy(() -> plainly(method, args));
        case "cancelCopy":
          flow.cancelCopy(() -> plainly(method, args));
          return null;
        case "writeToCopy", "flushCopy":
          try {
            return plainly(method, args);
          } catch (Throwable error) {
            flow.failed(Kind.WRITE, error);
            throw error;
          }
        default:
          return plainly(method, args);
      }
    }
  }
}
