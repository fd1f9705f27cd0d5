package dev.antipode.memory;

/** The embedded store's own error: a write was sent to a replica. */
public class ReadOnlyReplicaException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  /** An error that says which store and server. */
  public ReadOnlyReplicaException(String message) {
    super(message);
  }
}
