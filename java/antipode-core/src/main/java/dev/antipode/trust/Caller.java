package dev.antipode.trust;

import java.util.List;

/**
 * Who sent a request, as the server itself received it, below what filters and valves for proxies make of it (TRUST-33).
 *
 * @param peer the socket's peer as the server names it; null: it names none
 * @param isPeerCertain whether nothing can have put another address in the peer's place
 * @param forwarded the forwarding headers beside the lineage
 * @param shown the addresses that the application is shown for the peer
 */
public record Caller(String peer, boolean isPeerCertain, List<Addresses.Line> forwarded, List<String> shown) {
  /** The caller of a server that has nothing between the socket and us. */
  public static Caller of(String peer, List<Addresses.Line> forwarded) {
    return new Caller(peer, true, forwarded, List.of());
  }

  /** Judge peer, forwarding headers and whatever a server made of them (TRUST-10, TRUST-13, TRUST-32, TRUST-33). */
  Decision judge(TrustSettings trust) {
    if (!Addresses.isPrivatePeer(peer, trust.trustUnix())) {
      return Decision.no(Reason.PEER, peer == null ? "" : peer);
    }
    List<Addresses.Hop> hops = Addresses.hops(forwarded);
    Addresses.Hop found = trust.ignoreForwarded() ? null : Addresses.firstPublic(hops);
    if (found != null) {
      return Decision.no(found);
    }
    if (!isPeerCertain && (isNamed(peer, hops) || Addresses.areTooMany(hops))) {
      return Decision.no(Reason.UNSEEN, peer);
    }
    for (String address : shown) {
      if (!Addresses.areSame(address, peer)) {
        if (!Addresses.isPrivate(address)) {
          return Decision.no(Reason.RESOLVED, address);
        }
        if (!isNamed(address, hops)) {
          return Decision.no(Reason.UNSEEN, address);
        }
      }
    }
    return Decision.YES;
  }

  private static boolean isNamed(String address, List<Addresses.Hop> hops) {
    return hops.stream().anyMatch(hop -> Addresses.areSame(address, hop.address()));
  }
}
