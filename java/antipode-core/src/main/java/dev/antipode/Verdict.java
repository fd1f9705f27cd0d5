package dev.antipode;

/** What a barrier proved for one store (BAR-10). */
public enum Verdict {
  /** Every write asked for is visible here, or superseded. */
  VISIBLE("visible"),
  /** Looked at and not visible; nobody waited (dry-run, a timeout of zero). */
  NOT_YET("not_yet"),
  /** Not visible when the deadline passed. */
  TIMED_OUT("timed_out"),
  /** No proof is possible: the epoch has ended, the store cannot tell, no server answers. */
  UNPROVEN("unproven"),
  /** No such store in this process: carried on, not judged. */
  ELSEWHERE("elsewhere");

  private final String word;

  Verdict(String word) {
    this.word = word;
  }

  /** The same word in records, metrics and all languages: {@code timed_out}. */
  public String word() {
    return word;
  }

  @Override
  public String toString() {
    return word;
  }
}
