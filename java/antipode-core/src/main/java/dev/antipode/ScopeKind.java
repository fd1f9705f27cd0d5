package dev.antipode;

/** What opened a scope (REC-7). */
public enum ScopeKind {
  /** Application code: {@code root} or {@code scope}. */
  ROOT("root"),
  /** A middleware, for a request that came in. */
  REQUEST("request"),
  /** A consumer, for one message. */
  MESSAGE("message"),
  /** Application code, for work that outlives the request. */
  DETACHED("detached");

  private final String word;

  ScopeKind(String word) {
    this.word = word;
  }

  /** The same word in records and all languages. */
  public String word() {
    return word;
  }

  @Override
  public String toString() {
    return word;
  }
}
