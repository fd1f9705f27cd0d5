package dev.antipode.propagation;

import dev.antipode.Gap;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.internal.base.AnyOpenTelemetry;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.propagation.Gate;
import dev.antipode.internal.scope.ScopeLog;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Direction;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.TrustLog;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.propagation.Carriers.Formats;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapPropagator;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * How a lineage travels with requests and comes back with responses (paper section 6.2, chapter PROP).
 *
 * <p>The four functions {@link #extractRequest}, {@link #injectRequest}, {@link #extractResponse} and
 * {@link #injectResponse} serve any transport; our filters and interceptors are made of them. None throws for what a
 * header holds.
 */
public final class Propagation {
  private Propagation() {}

  /**
   * Opens the scope of a request that came in with these headers, for try-with-resources.
   *
   * @param peer the address of the socket's peer as the server gives it; null: it names none (TRUST-9)
   */
  public static RequestScope extractRequest(HeaderCarrier headers, String peer) {
    return new RequestScope(new Inbound(Carriers.read(headers.lines()), peer, false));
  }

  /** Puts what this request's scope added into the response's headers, before they leave (PROP-13). */
  public static void injectResponse(HeaderCarrier headers) {
    injectResponse(headers, SharedCaches.ANY_METHOD, SharedCaches.ANY_STATUS);
  }

  /**
   * The same where they are known, which says more surely what shared caches keep and who has answered (PROP-31, PROP-39).
   *
   * @param method the request's
   * @param status the response's
   */
  public static void injectResponse(HeaderCarrier headers, String method, int status) {
    Inbound inbound = Inbound.current();
    if (inbound != null) {
      inbound.injectResponse(headers, method, status);
    }
  }

  /**
   * Puts the current scope's lineage into a request's headers, if the host is approved (TRUST-15); an older lineage never
   * travels on to one that is not, as with a redirect (TRUST-26).
   *
   * @param host the host's name or address, with or without port
   * @return whether a lineage goes along
   * @throws dev.antipode.PendingWriteException under {@code on_pending=raise}; nothing else
   */
  public static boolean injectRequest(HeaderCarrier headers, String host) {
    Outgoing outgoing = prepareRequest(headers, host);
    change(headers, outgoing.changes());
    return outgoing.text() != null;
  }

  /** Takes an older lineage out of a request's headers. */
  public static void removeLineage(HeaderCarrier headers) {
    change(headers, Carriers.rewrite(headers::get, null, applicationFormats()));
  }

  private static void change(HeaderCarrier headers, Map<String, String> changes) {
    changes.forEach((name, value) -> {
      if (value == null) {
        headers.remove(name);
      } else {
        headers.set(name, value);
      }
    });
  }

  /** Joins what a response from this host brought back into the current scope, if it is believed (PROP-14). */
  public static void extractResponse(HeaderCarrier headers, String host) {
    List<String> values = valuesOf(headers, Carriers.LINEAGE_HEADER);
    if (!values.isEmpty()) {
      mergeResponse(values, host);
    }
  }

  // What client hooks are made of

  /**
   * What a client hook does to one request.
   *
   * @param changes header name to value; null: to be removed
   * @param text the text that leaves; null where none does
   */
  public record Outgoing(Map<String, String> changes, String text) {}

  /** Judges a request to a host and says what its headers must become. */
  public static Outgoing prepareRequest(HeaderCarrier headers, String host) {
    LineageScope scope = LineageScope.current();
    TrustSettings trust = TrustSettings.inForce();
    Decision decision = Judgement.requestOut(host, trust);
    Formats formats = applicationFormats();
    if (!decision.accepted()) {
      if (scope != null && scope.lineage().hasContent()) {
        TrustLog.report(decision, Direction.REQUEST_OUT, "");
      }
      return new Outgoing(Carriers.rewrite(headers::get, null, formats), null);
    }
    if (scope == null) {
      return outside(headers, trust, formats);
    }
    String text = Gate.give(Gate.leavingWithCall(scope, host), trust, Direction.REQUEST_OUT, scope);
    if (text != null) {
      TrustLog.warnOfForwarded(host, forwardingOf(headers), trust);
    }
    return new Outgoing(Carriers.rewrite(headers::get, text, formats), text);
  }

  /** What a request outside any scope must become; a lineage that the application put there stays (SCOPE-31). */
  private static Outgoing outside(HeaderCarrier headers, TrustSettings trust, Formats formats) {
    String text = Carriers.read(headers.lines()).hasLineage()
        ? null
        : Gate.give(Gate.leavingOutside(Direction.REQUEST_OUT), trust, Direction.REQUEST_OUT, null);
    return new Outgoing(text == null ? Map.of() : Carriers.rewrite(headers::get, text, formats), text);
  }

  private static List<Header> forwardingOf(HeaderCarrier headers) {
    List<Header> lines = new ArrayList<>();
    headers.lines().forEach(header -> lines.add(new Header(header.name(), header.value())));
    return lines;
  }

  /** A call may have reached the host and brought no answer: what the callee wrote is missing here (PROP-27). */
  public static void unanswered(String host, String why) {
    unanswered(LineageScope.current(), host, why);
  }

  /** The same for a call that ends in another thread than its scope's. */
  public static void unanswered(LineageScope scope, String host, String why) {
    if (expects(scope, host)) {
      markUnanswered(scope, host, why);
    }
  }

  /**
   * An answer has come to a call of this scope's, with these values of {@code antipode-lineage}: one of a gateway's own, which
   * has none, is no answer (PROP-31).
   */
  public static void answered(LineageScope scope, List<String> values, String host, int status) {
    if (!values.isEmpty()) {
      mergeResponse(scope, values, host);
    } else if (isGateways(status)) {
      unanswered(scope, host, "status " + status);
    }
  }

  /** Returns whether a gateway gives this status by itself, of a call that may have reached the callee (PROP-31). */
  static boolean isGateways(int status) {
    return status >= 502 && status <= 504 || status >= 520 && status <= 527 || status == 530;
  }

  /** Whether the answer of a call to this host brings something to the scope: not outside any, nor of a stranger. */
  public static boolean expects(LineageScope scope, String host) {
    return scope != null
        && ProcessSettings.inForce().mode() != Mode.OFF
        && Judgement.requestOut(host, TrustSettings.inForce()).accepted();
  }

  /** The same for a call of which an answer was expected when it was made, whatever the settings say now. */
  public static void markUnanswered(LineageScope scope, String host, String why) {
    scope.markIncomplete("unanswered", "a call to " + host + " brought no answer: " + why);
  }

  /**
   * What a call's scope has to be told of the messages of its response stream, whose lineage comes at the end (PROP-28); null
   * where nothing is to be told: outside any scope, of a host that is not approved, with {@code mode=off}.
   */
  public static Gap stream(LineageScope scope, String host) {
    return expects(scope, host)
        ? new Gap("streaming", "", "a response stream of " + host + " is open: its lineage comes at its end")
        : null;
  }

  /** Joins the {@code antipode-lineage} values of a response or trailer, at least one, into the current scope. */
  public static void mergeResponse(Iterable<String> values, String host) {
    mergeResponse(LineageScope.current(), values, host);
  }

  /** The same for a call that ends in another thread than its scope's; null: outside any scope. */
  public static void mergeResponse(LineageScope scope, Iterable<String> values, String host) {
    if (ProcessSettings.inForce().mode() == Mode.OFF) {
      return;
    }
    TrustSettings trust = TrustSettings.inForce();
    Instant now = Instant.now();
    Carriers.InboundHeaders came = Carriers.unwrap(values);
    Gate.ReceivedLineage taken = Gate.take(
        came.hasLineage() ? came : Carriers.unwrap(List.of("")),
        text -> Judgement.responseIn(host, text, trust, now),
        Direction.RESPONSE_IN,
        host);
    if (scope != null) {
      taken.noteIn(scope);
      scope.merge(taken.lineage());
    } else {
      taken.tell(null);
      Lineage lost = taken.lineage();
      lost.stores().forEach(ScopeLog::orphan);
    }
  }

  /**
   * Says that the calls in this block go to {@code host}, for instrumentations that call a propagator (TRUST-25). Whether
   * a lineage goes along is judged here; closing ends it.
   */
  public static Scope approve(String host) {
    return Approval.approve(host);
  }

  /** A client hook's word round one call: this text may leave with it; null: nothing, or the hook sees to it. */
  public static Scope approved(String text) {
    return Approval.approved(text);
  }

  static List<String> valuesOf(HeaderCarrier headers, String name) {
    List<String> values = new ArrayList<>();
    headers.lines().forEach(header -> {
      if (header.name().equalsIgnoreCase(name)) {
        values.add(header.value());
      }
    });
    return values;
  }

  /** In which formats the application propagates its own baggage now. */
  static Formats applicationFormats() {
    TextMapPropagator present = AnyOpenTelemetry.global().getPropagators().getTextMapPropagator();
    return Formats.of(present.fields());
  }
}
