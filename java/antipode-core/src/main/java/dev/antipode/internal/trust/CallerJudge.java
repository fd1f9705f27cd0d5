package dev.antipode.internal.trust;

import dev.antipode.propagation.Caller;
import java.util.List;

/** Whether the caller of a server is believed. */
final class CallerJudge {
  private CallerJudge() {}

  /** Judge peer, forwarding headers and whatever a server made of them (TRUST-10, TRUST-13, TRUST-32, TRUST-33). */
  static Decision judge(Caller caller, TrustSettings trust) {
    String peer = caller.peer();
    if (!Addresses.isPrivatePeer(peer, trust.trustUnix())) {
      return Decision.no(Reason.PEER, peer == null ? "" : peer);
    }
    List<Addresses.Hop> hops = Addresses.hops(caller.forwarded());
    Addresses.Hop found = trust.ignoreForwarded() ? null : Addresses.firstPublic(hops);
    if (found != null) {
      return Decision.no(found);
    }
    if (!caller.isPeerCertain() && (isNamed(peer, hops) || Addresses.areTooMany(hops))) {
      return Decision.no(Reason.UNSEEN, peer);
    }
    for (String address : caller.shown()) {
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
