package dev.antipode;

/** A lineage was about to leave while a write had no position yet ({@code on_pending=raise}, for tests). */
public class PendingWriteException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public PendingWriteException(String message) {
    super("AP115", message);
  }

  /** An exception that something else brought about. */
  public PendingWriteException(String message, Throwable cause) {
    super("AP115", message, cause);
  }
}
