package dev.antipode;

/** How far a pass holds (BAR-21). */
public enum Reach {
  /** This connection: {@code reading} after a lineage, and wait on read. */
  SESSION("session"),
  /** The server of the wrapped client. */
  REPLICA("replica"),
  /** Every server that readers here may use; a barrier's default. */
  REGION("region");

  private final String word;

  Reach(String word) {
    this.word = word;
  }

  /** The same word in records, metrics and all languages. */
  public String word() {
    return word;
  }

  @Override
  public String toString() {
    return word;
  }
}
