package dev.antipode;

/** What a server that does not answer means for the pass of a region (BAR-26). */
public enum OnReplicaOut {
  /** It is left out and named; the result is not complete. */
  NAME("name"),
  /** The barrier does not pass. */
  FAIL("fail");

  private final String word;

  OnReplicaOut(String word) {
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
