package dev.antipode.propagation;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.ScopeKind;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.propagation.Gate;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Direction;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.TrustLog;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.observer.Observers;
import dev.antipode.propagation.Carriers.InboundHeaders;
import dev.antipode.shim.Logs;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.Scope;
import java.time.Instant;

/**
 * One request that came in: its scope, and what its response may carry back.
 *
 * <p>A middleware makes one for every request, whether or not it brought a lineage (PROP-22), runs the application while
 * it is {@linkplain #makeCurrent() current}, asks {@link #responseText} when the header leaves, and calls {@link #close}
 * at the end.
 */
public final class Inbound implements AutoCloseable {
  private static final ContextKey<Inbound> KEY = ContextKey.named("antipode-inbound");

  private final Caller sender;
  private final boolean edge;
  private final LineageScope scope;
  private Lineage reported = Lineage.EMPTY; // under the lock of this, as the next two
  private TrustSettings judgedBy;
  private Decision judged;
  private volatile boolean isExpired;

  /**
   * A request of a server that has nothing between the socket and us.
   *
   * @param came what its headers brought
   * @param peer the socket's peer as the server names it; null: it names none (TRUST-9)
   * @param edge the middleware's own word, which can only add to the setting
   */
  public Inbound(InboundHeaders came, String peer, boolean edge) {
    this(came, Caller.of(peer, came.forwarded()), edge);
  }

  /** A request that came in, from this caller. */
  public Inbound(InboundHeaders came, Caller sender, boolean edge) {
    this.sender = sender;
    this.edge = edge;
    Observers.events().onWorkBegun();
    if (!came.hasLineage()) {
      this.scope = LineageScope.create(Lineage.EMPTY, ScopeKind.REQUEST);
      return;
    }
    TrustSettings trust = trust();
    Instant now = Instant.now();
    Decision caller = judged(trust);
    Gate.ReceivedLineage taken = Gate.take(
        came,
        text -> Judgement.requestIn(caller, text, trust, now),
        Direction.REQUEST_IN,
        sender.peer());
    this.scope = LineageScope.create(taken.lineage(), ScopeKind.REQUEST);
    taken.noteIn(scope);
  }

  /** The request that runs now; null outside any. */
  public static Inbound current() {
    return Context.current().get(KEY);
  }

  private TrustSettings trust() {
    return TrustSettings.inForce().atEdge(edge);
  }

  /** Return what trust says of the caller: once, unless the settings change meanwhile (TRUST-32). */
  private synchronized Decision judged(TrustSettings trust) {
    if (!trust.equals(judgedBy)) {
      judged = Judgement.responseOut(sender, trust);
      judgedBy = trust;
    }
    return judged;
  }

  /** The request's scope. */
  public LineageScope scope() {
    return scope;
  }

  /**
   * A Context with this request in it, and without a lineage in OpenTelemetry's baggage: an instrumentation outside of
   * the middleware may have put it there, unjudged (TRUST-5).
   */
  public Context in(Context context) {
    return withoutMember(scope.storeInContext(context.with(KEY, this)));
  }

  static Context withoutMember(Context context) {
    Baggage baggage = Baggage.fromContextOrNull(context);
    return baggage == null || baggage.getEntryValue(Carriers.BAGGAGE_KEY) == null
        ? context
        : baggage.toBuilder().remove(Carriers.BAGGAGE_KEY).build().storeInContext(context);
  }

  /** Runs what follows in this thread in the request's scope, until that is closed; it does not end the scope. */
  public Scope makeCurrent() {
    return in(Context.current()).makeCurrent();
  }

  /** Whether a lineage may go to this caller at all; where not, what the application set is taken out. */
  public boolean mayAnswer() {
    return judged(trust()).accepted();
  }

  /** Returns whether something of ours may go to this caller at all, as the mode is now. */
  public boolean isHeard() {
    return ProcessSettings.inForce().mode() != Mode.OFF && mayAnswer();
  }

  /**
   * The header's value for what the scope added since it was last asked; null where none is to be sent. From now on what
   * is written comes late, and is counted (PROP-13, PROP-16).
   *
   * @param isShared whether shared caches may keep the response, which says then that something is missing
   * @param status the response's; with some it is said that nothing was added
   * @param isReplaced whether a lineage is there already, which is taken out of a shared one
   */
  public String responseText(boolean isShared, int status, boolean isReplaced) {
    return responseText(isShared, status, isReplaced, false);
  }

  /**
   * The same.
   *
   * @param isAlone whether the header leaves before the body, and something may be written in between
   */
  public synchronized String responseText(boolean isShared, int status, boolean isReplaced, boolean isAlone) {
    scope.sent();
    if (ProcessSettings.inForce().mode() == Mode.OFF) {
      return null;
    }
    Lineage added = scope.additions();
    Lineage fresh = added.addedTo(reported);
    reported = added;
    boolean isWithheld = isShared && (fresh.hasContent() || isReplaced);
    if (isWithheld) {
      Logs.warn(
          "AP404",
          "response shared",
          "what a request wrote goes back to nobody: shared caches may keep the response.",
          "dropped");
      fresh = Lineage.EMPTY.markedIncomplete();
    } else if (isAlone && !isShared) {
      fresh = fresh.markedIncomplete();
    }
    boolean isTold = fresh.hasContent() || Observers.events().namesMessages() && !isShared;
    // Also that nothing was added; a lineage that is there says it already.
    boolean says = !isReplaced
        && (status == SharedCaches.NOT_MODIFIED || Propagation.isGateways(status) && !isExpired);
    if (!isTold && !says) {
      return null;
    }
    TrustSettings trust = trust();
    Decision decision = judged(trust);
    if (!decision.accepted()) {
      if (isTold) {
        TrustLog.report(decision, Direction.RESPONSE_OUT, "");
      }
      return null;
    }
    String text = isTold ? Gate.giveBack(fresh, trust, Direction.RESPONSE_OUT, scope) : null;
    return text == null && says ? Gate.giveNothing(trust, Direction.RESPONSE_OUT) : text;
  }

  /**
   * Puts what the scope added into the headers of the response, before they leave (PROP-13).
   *
   * @param method the request's, or {@link SharedCaches#ANY_METHOD}
   * @param status the response's, or {@link SharedCaches#ANY_STATUS}
   */
  public void injectResponse(HeaderCarrier headers, String method, int status) {
    boolean isShared = SharedCaches.mayKeep(headers.lines(), method, status);
    String before = headers.get(Carriers.LINEAGE_HEADER);
    String text = responseText(isShared, status, before != null);
    if (text != null) {
      headers.set(Carriers.LINEAGE_HEADER, isShared || before == null ? text : before + "," + text);
    } else if (isShared || !mayAnswer()) {
      headers.remove(Carriers.LINEAGE_HEADER);
    }
  }

  /** The container waits no longer, while the request's work may go on: its answer cannot say what that adds (PROP-13). */
  public void expire() {
    isExpired = true;
  }

  /** Ends the request's scope; twice is harmless. */
  @Override
  public void close() {
    scope.stop();
  }
}
