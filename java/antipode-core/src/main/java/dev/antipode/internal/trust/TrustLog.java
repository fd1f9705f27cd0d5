package dev.antipode.internal.trust;

import dev.antipode.Trust;
import dev.antipode.internal.model.Display;
import dev.antipode.observer.Observers;
import dev.antipode.propagation.Header;
import dev.antipode.shim.Logs;

/** Says what came of a judgement, and which setting would change it (TRUST-27 to TRUST-30). */
public final class TrustLog {
  private TrustLog() {}

  /** Counts a lineage that did not pass, and says so once a minute. */
  public static void report(Decision decision, Direction direction, String sender) {
    Reason reason = decision.reason();
    boolean sealed = reason == Reason.SEAL || reason == Reason.EXPIRED;
    Observers.events().onLineageDropped(sealed ? "seal" : "untrusted", direction.word());
    String cure = cureOf(reason);
    if (cure == null) {
      return; // the operator asked for exactly this
    }
    String verb = direction.isOutward() ? "did not send a lineage to"
        : decision.accepted() ? "took a lineage from" : "dropped a lineage from";
    String code = codeOf(reason, direction);
    String where = Display.shown(sealed ? sender : decision.about());
    // The kind leaves the address out: an attacker with many of them must not fill the log.
    Logs.warn(
        code,
        "trust " + direction + " " + reason.name() + " " + decision.header(),
        verb + " " + (where.isEmpty() ? "a peer without a name" : where) + " (" + direction.words() + "): "
            + wordsOf(decision) + ". " + cure,
        decision.accepted() ? "taken" : "dropped");
  }

  private static String codeOf(Reason reason, Direction direction) {
    return switch (reason) {
      case EXPIRED -> "AP409";
      case UNSEEN -> "AP412";
      default -> direction.isOutward() ? "AP404" : "AP403";
    };
  }

  private static String wordsOf(Decision decision) {
    return switch (decision.reason()) {
      case FORWARDED -> decision.header() + " has a public address";
      case SEAL -> Seal.State.valueOf(decision.about()).sentence();
      default -> decision.reason().words();
    };
  }

  private static String cureOf(Reason reason) {
    return switch (reason) {
      case FORWARDED -> "If this is the edge set ANTIPODE_EDGE=true; if applications copy that header inside, "
          + "ANTIPODE_FORWARDED=ignore.";
      case PEER, RESOLVED -> "If this is the edge set ANTIPODE_EDGE=true; if callers inside have public addresses, seal lineages "
          + "with ANTIPODE_KEYS_FILE.";
      case UNSEEN -> "Something that reads headers of proxies has put an address in the peer's place (a container's setting, a "
          + "valve, a filter before ours). Put it behind the filter antipode, as Tomcat's RemoteIpFilter or Spring's "
          + "ForwardedHeaderFilter, or seal lineages with ANTIPODE_KEYS_FILE.";
      case HOST -> "If it is one of yours add it to ANTIPODE_PEERS.";
      case EXPIRED -> "It is waited for all the same. If clocks agree, raise ANTIPODE_SEAL_TTL_S, or ANTIPODE_SEAL_REST_TTL_S.";
      case SEAL -> "Give this service and its callers the same keys: ANTIPODE_KEYS_FILE.";
      default -> null;
    };
  }

  /** Says at the sender that a lineage leaves beside a forwarding header for which the receiver drops it (TRUST-30). */
  public static void warnOfForwarded(String host, Iterable<Header> headers, TrustSettings trust) {
    if (trust.trust() != Trust.PRIVATE || trust.ignoreForwarded()) {
      return;
    }
    Addresses.Hop found = Addresses.firstPublic(Addresses.hops(headers));
    if (found != null) {
      Logs.warn(
          "AP414",
          "trust beside " + found.header(),
          "sent a lineage to " + Display.shown(host) + " beside " + found.header() + ", which has a public address ("
              + Display.shown(found.address()) + "): the receiver drops it. Do not copy that header, or set "
              + "ANTIPODE_FORWARDED=ignore at the receiver and here.",
          "sent");
    }
  }
}
