package dev.antipode;

/**
 * The root of everything that Antipode throws itself.
 *
 * <p>The wire never throws: of these, only {@code deserialize} throws {@link MalformedLineageException}, and middlewares
 * throw none. An error of a datastore's own client stays that client's exception in a wrapped call; in a barrier it
 * becomes the verdict {@code unproven}, with the client's words as the reason.
 */
public class AntipodeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public AntipodeException(String message) {
    super(message);
  }

  /** An exception that something else brought about. */
  public AntipodeException(String message, Throwable cause) {
    super(message, cause);
  }
}
