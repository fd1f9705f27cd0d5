package dev.antipode.redis;

/** An error reply of a server; on our own connections often a value. */
final class ServerError extends Exception {
  private static final long serialVersionUID = 1L;

  ServerError(String message) {
    super(message);
  }

  /** Its first word: NOPERM, LOADING, … */
  String code() {
    return code(getMessage());
  }

  /** The first word of an error's words. */
  static String code(String words) {
    return String.valueOf(words).split(" ", 2)[0];
  }
}
