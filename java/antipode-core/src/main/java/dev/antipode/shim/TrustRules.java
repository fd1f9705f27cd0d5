package dev.antipode.shim;

import dev.antipode.Lineage;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.Purpose;
import dev.antipode.internal.trust.Reason;
import dev.antipode.internal.trust.TrustSettings;
import java.time.Instant;

/** What shims and transports ask of the settings of trust (chapter TRUST of the specification). */
public final class TrustRules {
  private TrustRules() {}

  /**
   * Read the settings of trust: middlewares do when they are made, so that a mistake is found at the start.
   *
   * @throws dev.antipode.ConfigurationException where they are wrong
   */
  public static void check() {
    TrustSettings.inForce();
  }

  /** Return whether a request to this host may carry a lineage (TRUST-15). */
  public static boolean isApproved(String host) {
    return Judgement.requestOut(host, TrustSettings.inForce()).accepted();
  }

  /**
   * Return whether lineages of messages count here at all; only then is a message that lacks one a loss (TRUST-28).
   *
   * @param lineageIn what the store's option says; null where it says nothing
   */
  public static boolean takesMessages(Boolean lineageIn) {
    Decision decision =
        Judgement.messageIn(Lineage.EMPTY.serialize(), TrustSettings.inForce(), lineageIn, Instant.now());
    return decision.accepted() || decision.reason() == Reason.SEAL;
  }

  /**
   * Return whether messages may carry a lineage.
   *
   * @param lineageOut what the store's option says; null where it says nothing
   */
  public static boolean stampsMessages(Boolean lineageOut) {
    return Judgement.messageOut(TrustSettings.inForce(), lineageOut).accepted();
  }

  /** Return a lineage as a message carries it, sealed where that is set. */
  public static String messageText(Lineage lineage) {
    return Judgement.outgoing(lineage.serialize(), TrustSettings.inForce(), Purpose.MESSAGE, Instant.now());
  }
}
