package dev.antipode.postgresql;

import dev.antipode.shim.Write;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The writes of prepared transactions (two-phase commit), each by its transaction's name: pending until that one is ended. The
 * end of another one, which this connection may not have prepared, settles nothing here.
 */
final class PreparedWrites {
  private static final Pattern NAME = Pattern.compile(
      "(?i)\\s*(?:prepare\\s+transaction|(?:commit|rollback)\\s+prepared)\\s+('(?:[^'\\\\]|'')*')[\\s;]*");
  private static final Pattern PREPARES = Pattern.compile("(?i)\\bprepare\\b.*\\btransaction\\b", Pattern.DOTALL);
  private static final int MOST = 100;

  private final Map<String, Write> writes = new LinkedHashMap<>();

  /** Return whether a text of several statements may prepare a transaction, which is committed later, if ever. */
  static boolean mayPrepare(String text) {
    return text != null && PREPARES.matcher(text).find();
  }

  private static String name(String text) {
    Matcher match = NAME.matcher(text == null ? "" : text);
    return match.matches() ? match.group(1) : "";
  }

  /** The write's transaction was prepared by this text. One whose name is unsure stays pending in its scopes. */
  synchronized void keep(String text, Write write) {
    String name = name(text);
    if (name.isEmpty()) {
      write.outcomeUnknown();
      return;
    }
    if (writes.size() == MOST) { // others end them
      writes.remove(writes.keySet().iterator().next()).outcomeUnknown();
    }
    writes.put(name, write);
  }

  /** Return the write of the transaction that this text ends; null where it is none of these. */
  synchronized Write take(String text) {
    return writes.remove(name(text));
  }

  /** Nobody here ends them any more. */
  synchronized void leave() {
    writes.values().forEach(Write::outcomeUnknown);
    writes.clear();
  }
}
