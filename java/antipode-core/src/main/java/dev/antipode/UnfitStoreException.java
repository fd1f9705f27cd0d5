package dev.antipode;

/** A datastore's topology, settings or rights do not allow a proof; the message holds the cure. */
public class UnfitStoreException extends ConfigurationException {
  private static final long serialVersionUID = 1L;

  /** An exception that says what happened, why, and what to do. */
  public UnfitStoreException(String message) {
    super("AP208", message);
  }

  /** An exception that something else brought about. */
  public UnfitStoreException(String message, Throwable cause) {
    super("AP208", message, cause);
  }
}
