package dev.antipode.redis;

/** An error reply of a server; on our own connections often a value. */
final class ServerError extends Exception {
  private static final long serialVersionUID = 1L;

  ServerError(String message) {
    super(message);
  }

  /** Its first word: NOPERM, LOADING, … */
  String code() {
    return getMessage().split(" ", 2)[0];
  }
}
