package dev.antipode;

/** Whose lineages are believed, and who may see ours (chapter TRUST of the specification). */
public enum Trust {
  /** Callers and hosts inside: by their addresses and names. For a first run, no border. */
  PRIVATE("private"),
  /** Everybody. */
  ALL("all"),
  /** Nobody. */
  NONE("none"),
  /** Lineages with a valid seal. */
  KEY("key");

  private final String word;

  Trust(String word) {
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
