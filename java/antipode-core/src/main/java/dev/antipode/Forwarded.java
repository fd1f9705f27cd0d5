package dev.antipode;

/** Whether the addresses in forwarding headers are judged (TRUST-10, TRUST-13). */
public enum Forwarded {
  /** They are, beside the socket's peer. */
  CHECK("check"),
  /** Only the peer is: where applications copy these headers from hop to hop. */
  IGNORE("ignore");

  private final String word;

  Forwarded(String word) {
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
