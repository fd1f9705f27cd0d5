package dev.antipode.postgresql;

import dev.antipode.Lineage;
import java.lang.reflect.Method;
import java.sql.ResultSet;

/** Beside a result that the driver fetches in parts: later ones are of the statement's moment, too (SHIM-48). */
final class PartialResult extends Proxies.Handler {
  private final Flow flow;
  private final Lineage moment;
  private final int first;
  private long asked;

  private PartialResult(ResultSet plain, Flow flow, Lineage moment, int first) {
    super(plain);
    this.flow = flow;
    this.moment = moment;
    this.first = first;
  }

  /** {@code first}: how many rows came with the statement's own answer. */
  static ResultSet of(ResultSet plain, Flow flow, Lineage moment, int first) {
    return Proxies.of(ResultSet.class, plain, new PartialResult(plain, flow, moment, first));
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    switch (method.getName()) {
      case "next":
        if (++asked > first) {
          fetches();
        }
        break;
      case "isLast", "isAfterLast":
        if (asked >= first) {
          fetches();
        }
        break;
      case "toString":
        return "parts of " + plainly(method, args);
      default:
        break;
    }
    return plainly(method, args);
  }

  private void fetches() {
    Reads.fetches(flow, moment, "more rows of a result that is fetched in parts: run the query again, or without a fetch size");
  }
}
