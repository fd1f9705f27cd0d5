package dev.antipode.internal.trust;

import dev.antipode.Trust;
import dev.antipode.propagation.Caller;
import java.time.Instant;

/** Judging: the table of TRUST-3. Each direction is judged before anything is parsed; a judgement is pure. */
public final class Judgement {
  private Judgement() {}

  /**
   * Return whether a request's lineage is taken: by caller and seal.
   *
   * @param caller what {@link #responseOut} says of the caller, once for all texts of a request (TRUST-32)
   */
  public static Decision requestIn(Decision caller, String text, TrustSettings trust, Instant now) {
    if (trust.trust() == Trust.KEY && !trust.edge()) {
      return bySeal(text, trust, Purpose.REQUEST, now);
    }
    return caller.accepted() ? Decision.yes(Seal.strip(text)) : caller;
  }

  /** Whether a response may carry what the scope added: to a caller inside, even if it sent no lineage. */
  public static Decision responseOut(Caller caller, TrustSettings trust) {
    if (trust.edge()) {
      return Decision.no(Reason.EDGE);
    }
    return switch (trust.trust()) {
      case ALL -> Decision.YES;
      case NONE -> Decision.no(Reason.OFF);
      case KEY, PRIVATE -> CallerJudge.judge(caller, trust);
    };
  }

  /** Whether a request to this host (name or address, with or without port) may carry a lineage. */
  public static Decision requestOut(String host, TrustSettings trust) {
    if (trust.trust() == Trust.NONE) {
      return Decision.no(Reason.OFF, host);
    }
    if (trust.trust() == Trust.ALL && !trust.edge() || Hosts.areInside(host, trust.peers())) {
      return Decision.YES;
    }
    return Decision.no(Reason.HOST, host);
  }

  /** Whether what a response from this host brought back is taken. */
  public static Decision responseIn(String host, String text, TrustSettings trust, Instant now) {
    Decision decision = requestOut(host, trust);
    if (trust.trust() == Trust.KEY && !(trust.edge() && !decision.accepted())) {
      return bySeal(text, trust, Purpose.RESPONSE, now);
    }
    return decision.accepted() ? Decision.yes(Seal.strip(text)) : decision;
  }

  /** Return whether a message's lineage is taken; {@code allowed} is its client's option, null if unsaid. */
  public static Decision messageIn(String text, TrustSettings trust, Boolean allowed, Instant now) {
    return restIn(text, trust, Purpose.MESSAGE, allowed, now);
  }

  /** Return whether the lineage that rests beside a value is taken. */
  public static Decision valueIn(String text, TrustSettings trust, Instant now) {
    return restIn(text, trust, Purpose.VALUE, null, now);
  }

  private static Decision restIn(String text, TrustSettings trust, Purpose purpose, Boolean allowed, Instant now) {
    if (Boolean.FALSE.equals(allowed)) {
      return Decision.no(Reason.OPTION);
    }
    if (trust.trust() == Trust.NONE) {
      return Decision.no(Reason.OFF);
    }
    if (trust.edge() && allowed == null) {
      return Decision.no(Reason.EDGE);
    }
    return trust.trust() == Trust.KEY ? bySeal(text, trust, purpose, now) : Decision.yes(Seal.strip(text));
  }

  /** Whether a message or value may carry a lineage; {@code allowed} is its client's option, null if unsaid. */
  public static Decision messageOut(TrustSettings trust, Boolean allowed) {
    if (Boolean.FALSE.equals(allowed)) {
      return Decision.no(Reason.OPTION);
    }
    return trust.trust() == Trust.NONE ? Decision.no(Reason.OFF) : Decision.YES;
  }

  /** The lineage text as it leaves: sealed under {@code key} (TRUST-23). */
  public static String outgoing(String text, TrustSettings trust, Purpose purpose, Instant now) {
    return trust.trust() == Trust.KEY ? Seal.seal(text, trust.keys(), purpose, now, trust.lifeOf(purpose)) : text;
  }

  private static Decision bySeal(String text, TrustSettings trust, Purpose purpose, Instant now) {
    Seal.OpenedSeal opened = Seal.open(text, trust.keys(), purpose, now);
    return switch (opened.state()) {
      case VALID -> Decision.yes(opened.text());
      case EXPIRED -> new Decision(true, opened.text(), Reason.EXPIRED, opened.state().name(), ""); // TRUST-37
      default -> Decision.no(Reason.SEAL, opened.state().name());
    };
  }
}
