package dev.antipode.internal.trust;

/** Why a lineage was not taken or not sent. */
public enum Reason {
  /** It was. */
  NONE(""),
  /** Trust is switched off. */
  OFF("trust is none"),
  /** An edge takes nothing from callers and answers them nothing. */
  EDGE("this is an edge"),
  /** The socket's peer. */
  PEER("the peer's address is public"),
  /** A header that proxies write. */
  FORWARDED("a forwarding header has a public address"),
  /** What a server or filter made of such a header. */
  RESOLVED("the address that the server resolved is public"),
  /** What stands between the socket and us: a valve or filter for proxies. */
  UNSEEN("the caller's own address or headers cannot be seen"),
  /** The host of a call of ours. */
  HOST("the host is not approved"),
  /** {@code lineage_in} or {@code lineage_out} of a client. */
  OPTION("the client was told not to"),
  /** The seal. */
  SEAL("the seal is not valid"),
  /** The seal is genuine, and its time is over: the lineage is taken (TRUST-37). */
  EXPIRED("its seal has expired");

  private final String words;

  Reason(String words) {
    this.words = words;
  }

  /** For a person. */
  public String words() {
    return words;
  }

  @Override
  public String toString() {
    return words;
  }
}
