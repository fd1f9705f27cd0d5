package dev.antipode.propagation;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.internal.propagation.Gate;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Direction;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.TrustLog;
import dev.antipode.internal.trust.TrustSettings;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.Scope;

/**
 * A client hook's word in the Context round one call: which text may leave with it (TRUST-25). A propagator knows neither
 * peer nor host.
 *
 * @param text the text that may leave, or null for nothing
 * @param written whether a propagator further out writes it: those further in leave everything as it is
 */
record Approval(String text, boolean written) {
  private static final ContextKey<Approval> KEY = ContextKey.named("antipode-approval");

  /** What stands in a Context, or null. */
  static Approval in(Context context) {
    return context.get(KEY);
  }

  /** A Context with this word in it, and nothing of ours in the application's baggage. */
  Context storeIn(Context context) {
    return Inbound.withoutMember(context).with(KEY, this);
  }

  /**
   * Says that the calls in this block go to {@code host}, for instrumentations that call a propagator. Whether a lineage
   * goes along is judged here, and its text is made here, once.
   */
  static Scope approve(String host) {
    TrustSettings trust = TrustSettings.inForce();
    LineageScope scope = LineageScope.current();
    String text = null;
    Decision decision = Judgement.requestOut(host, trust);
    if (decision.accepted()) {
      Lineage lineage = scope == null
          ? Gate.leavingOutside(Direction.REQUEST_OUT)
          : Gate.leavingWithCall(scope, host);
      text = Gate.give(lineage, trust, Direction.REQUEST_OUT, scope);
    } else if (scope != null && scope.lineage().hasContent()) {
      TrustLog.report(decision, Direction.REQUEST_OUT, "");
    }
    return approved(text);
  }

  /**
   * Makes this word current. Where the application's propagator is not ours, the text stands in the baggage of the call,
   * so that an instrumentation inside of the hook, which writes the header anew, writes it too (PROP-24).
   */
  static Scope approved(String text) {
    Context context = new Approval(text, false).storeIn(Context.current());
    if (text != null && !AntipodePropagator.isInstalled() && Propagation.applicationFormats().baggage()) {
      Baggage baggage = Baggage.fromContext(context).toBuilder().put(Carriers.BAGGAGE_KEY, text).build();
      context = baggage.storeInContext(context);
    }
    return context.makeCurrent();
  }
}
