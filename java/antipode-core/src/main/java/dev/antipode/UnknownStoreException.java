package dev.antipode;

/** A barrier names a store that this process has not registered. */
public class UnknownStoreException extends ConfigurationException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public UnknownStoreException(String message) {
    super("AP106", message);
  }

  /** An exception that something else brought about. */
  public UnknownStoreException(String message, Throwable cause) {
    super("AP106", message, cause);
  }
}
