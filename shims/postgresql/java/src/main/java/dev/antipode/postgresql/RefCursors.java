package dev.antipode.postgresql;

import dev.antipode.Lineage;
import java.lang.reflect.Method;
import java.sql.ResultSet;
import java.util.Locale;

/**
 * Beside a result that may hold names of cursors: the driver fetches from these by itself when the application asks for the
 * value, and they are of the moment at which the statement opened them (SHIM-48).
 */
final class RefCursors extends Proxies.Handler {
  private static final String ROWS =
      "it fetches from a cursor that a function opened before what has to be shown was there: call the function again";

  private final Flow flow;
  private final Lineage moment;

  private RefCursors(ResultSet plain, Flow flow, Lineage moment) {
    super(plain);
    this.flow = flow;
    this.moment = moment;
  }

  /** Return whether a statement may give names of cursors: whatever is no plain query, and one that says so. */
  static boolean mayBeIn(Kind kind, String text) {
    return kind != Kind.READ || text.toLowerCase(Locale.ROOT).contains("refcursor");
  }

  static ResultSet of(ResultSet plain, Flow flow, Lineage moment) {
    return Proxies.of(ResultSet.class, plain, new RefCursors(plain, flow, moment));
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    if (method.getName().equals("toString")) {
      return "cursors of " + plainly(method, args);
    }
    Object value = plainly(method, args);
    if (method.getName().equals("getObject") && value instanceof ResultSet) {
      Reads.fetches(flow, moment, ROWS);
    }
    return value;
  }
}
