package dev.antipode;

/** How two lineages stand to each other in the order of inclusion (LIN-13). */
public enum Order {
  /** The other covers this one and more. */
  BEFORE("before"),
  /** This one covers the other and more. */
  AFTER("after"),
  /** Each covers the other. */
  EQUAL("equal"),
  /** Neither covers the other. */
  CONCURRENT("concurrent");

  private final String word;

  Order(String word) {
    this.word = word;
  }

  /** The same word in all languages. */
  public String word() {
    return word;
  }

  @Override
  public String toString() {
    return word;
  }
}
