package dev.antipode;

/** What happens where a lineage leaves before the commit of the same task's own write (SCOPE-19). */
public enum OnPending {
  /** The copy that leaves is marked incomplete. */
  MARK("mark"),
  /** That, and a log line. */
  WARN("warn"),
  /** The call throws {@link PendingWriteException}: for tests. */
  RAISE("raise");

  private final String word;

  OnPending(String word) {
    this.word = word;
  }

  /** The same word in settings and all languages. */
  public String word() {
    return word;
  }

  @Override
  public String toString() {
    return word;
  }
}
