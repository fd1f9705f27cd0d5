package dev.antipode.postgresql;

import java.lang.reflect.Method;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Locale;

/**
 * Beside a result that may hold names of cursors: the driver fetches from these by itself when the application asks for the
 * value, and they are of the moment at which they were opened, by the statement or before it (SHIM-48).
 */
final class RefCursors extends Proxies.Handler {
  private static final String ROWS =
      "it fetches from a cursor that was opened before what has to be shown was there: open it anew, or call the function again";

  private final ResultSet plain;
  private final Flow flow;
  private final Moments.CursorMoments given;

  private RefCursors(ResultSet plain, Flow flow, Moments.CursorMoments given) {
    super(plain);
    this.plain = plain;
    this.flow = flow;
    this.given = given;
  }

  /** Return whether a statement may give names of cursors: whatever is no plain query, and one that says so. */
  static boolean mayBeIn(Kind kind, String text) {
    return kind != Kind.READ || text.toLowerCase(Locale.ROOT).contains("refcursor");
  }

  /** {@code given}: what is known of the cursors whose names these rows may hold. */
  static ResultSet of(ResultSet plain, Flow flow, Moments.CursorMoments given) {
    return Proxies.of(ResultSet.class, plain, new RefCursors(plain, flow, given));
  }

  /** What the driver has fetched for a function that was called: which cursor it was, it does not tell. */
  static Object called(Object value, Flow flow, Moments.CursorMoments given) {
    if (value instanceof ResultSet) {
      given.older().forEach(each -> Reads.fetches(flow, each, ROWS));
    }
    return value;
  }

  @Override
  Object call(Object proxy, Method method, Object[] args) throws Throwable {
    if (method.getName().equals("toString")) {
      return "cursors of " + plainly(method, args);
    }
    Object value = plainly(method, args);
    if (method.getName().equals("getObject") && value instanceof ResultSet) {
      Reads.fetches(flow, given.of(name(args[0])), ROWS);
    }
    return value;
  }

  private String name(Object column) throws SQLException {
    return column instanceof Integer number ? plain.getString(number) : plain.getString((String) column);
  }
}
