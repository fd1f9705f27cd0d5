package dev.antipode;

/** What barriers do (CONF-9). Of environment and code the more careful wins, in the order of these (CONF-5). */
public enum Mode {
  /** They wait, and fail where they must. */
  ENFORCE("enforce"),
  /** They only record what would not have been visible, and never wait. */
  DRY_RUN("dry-run"),
  /** Nothing at all: lineages are forwarded untouched, nothing is added. */
  OFF("off");

  private final String word;

  Mode(String word) {
    this.word = word;
  }

  /** The same word in settings and all languages. */
  public String word() {
    return word;
  }

  /** The more careful of two. */
  public Mode orMoreCareful(Mode other) {
    return compareTo(other) >= 0 ? this : other;
  }

  @Override
  public String toString() {
    return word;
  }
}
