package dev.antipode;

/**
 * What a barrier found out about one server.
 *
 * @param address the server, as its shim names it
 * @param verdict the worst of what was found there
 * @param reason why, in a sentence; empty where it is visible
 * @param leftOut it does not answer, or is not listed any more, and the pass does not speak of it (BAR-26, BAR-54)
 * @param kind where it is unproven: what kept it from being proved; else null
 * @param overloaded it was late, and overload answered for it (BAR-39, BAR-40)
 */
public record ServerResult(
    String address, Verdict verdict, String reason, boolean leftOut, UnprovenKind kind, boolean overloaded) {
  /** What was found where no overload answered. */
  public ServerResult(String address, Verdict verdict, String reason, boolean leftOut, UnprovenKind kind) {
    this(address, verdict, reason, leftOut, kind, false);
  }

  /** Return the reason in words that name the server. */
  public String told() {
    return leftOut ? address + " " + reason : reason;
  }
}
