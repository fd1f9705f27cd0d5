package dev.antipode;

/** A text is no lineage in the wire form (WIRE-25). */
public class MalformedLineageException extends AntipodeException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public MalformedLineageException(String message) {
    super("AP405", message);
  }

  /** An exception that something else brought about. */
  public MalformedLineageException(String message, Throwable cause) {
    super("AP405", message, cause);
  }
}
