package dev.antipode;

/** A blocking call where it would stop every other task of an event loop. */
public class BlockingCallException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public BlockingCallException(String message) {
    super("AP105", message);
  }

  /** An exception that something else brought about. */
  public BlockingCallException(String message, Throwable cause) {
    super("AP105", message, cause);
  }
}
