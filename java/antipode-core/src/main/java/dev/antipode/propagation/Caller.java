package dev.antipode.propagation;

import java.util.List;

/**
 * Who sent a request, as the server itself received it, below what filters and valves for proxies make of it (TRUST-33).
 *
 * @param peer the socket's peer as the server names it; null: it names none
 * @param isPeerCertain whether nothing can have put another address in the peer's place
 * @param forwarded the forwarding headers beside the lineage
 * @param shown the addresses that the application is shown for the peer
 */
public record Caller(String peer, boolean isPeerCertain, List<Header> forwarded, List<String> shown) {
  /** The caller of a server that has nothing between the socket and us. */
  public static Caller of(String peer, List<Header> forwarded) {
    return new Caller(peer, true, forwarded, List.of());
  }
}
