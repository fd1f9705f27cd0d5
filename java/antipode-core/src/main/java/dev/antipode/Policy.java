package dev.antipode;

/** What a barrier does where it cannot pass (BAR-42, BAR-20). */
public enum Policy {
  /** Throws, with the result in the exception. */
  RAISE("raise"),
  /** Returns the result, which is not satisfied. */
  PROCEED("proceed"),
  /** Throws {@link RedeliverException}: the message goes back to its queue. Only in a message's scope. */
  REDELIVER("redeliver"),
  /** For what is unproven alone: as the policy for timeouts says. */
  AS_TIMEOUT("as_timeout");

  private final String word;

  Policy(String word) {
    this.word = word;
  }

  /** The same word in settings, attributes and all languages. */
  public String word() {
    return word;
  }

  /**
   * The policy of this word.
   *
   * @throws IllegalArgumentException for another word
   */
  public static Policy of(String word) {
    for (Policy policy : values()) {
      if (policy.word.equals(word)) {
        return policy;
      }
    }
    throw new IllegalArgumentException("no such policy: " + word);
  }

  @Override
  public String toString() {
    return word;
  }
}
