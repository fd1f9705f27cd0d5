package dev.antipode.propagation;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.ScopeKind;
import dev.antipode.Trust;
import dev.antipode.internal.base.AnyOpenTelemetry;
import dev.antipode.internal.propagation.Gate;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Direction;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.propagation.Carriers.Formats;
import dev.antipode.shim.Logs;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.context.propagation.TextMapSetter;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Carries the lineage round the application's own propagators, in their formats.
 *
 * <p>Extracting moves the lineage out of OpenTelemetry's baggage into a key of our own. Injecting writes it only where a
 * client hook has put its approval into the Context (TRUST-25), or under {@code trust=all}.
 *
 * <pre>{@code
 * ContextPropagators.create(AntipodePropagator.round(TextMapPropagator.composite(
 *     W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance())));
 * }</pre>
 *
 * <p>Where the environment configures OpenTelemetry, it goes round the propagator of baggage by itself. The word
 * {@code antipode} in {@code OTEL_PROPAGATORS} is for applications that propagate no baggage: then the lineage travels in
 * {@code antipode-lineage}.
 */
public final class AntipodePropagator implements TextMapPropagator {
  private static final ContextKey<List<String>> ARRIVED = ContextKey.named("antipode-arrived");

  private final TextMapPropagator inner;
  private final Formats formats;

  private AntipodePropagator(TextMapPropagator inner) {
    this.inner = inner;
    this.formats = Formats.of(inner.fields());
  }

  /** One that goes round the application's own. */
  public static AntipodePropagator round(TextMapPropagator inner) {
    return inner instanceof AntipodePropagator own ? own : new AntipodePropagator(inner);
  }

  /** One that stands beside others, and writes the lineage's own header where none of them carries it. */
  public static AntipodePropagator beside() {
    return new AntipodePropagator(TextMapPropagator.noop());
  }

  /** Whether the global propagators are one of these, or have one among them. */
  static boolean isInstalled() {
    return AnyOpenTelemetry.global().getPropagators().getTextMapPropagator().fields()
        .contains(Carriers.LINEAGE_HEADER);
  }

  /** The lineage texts that an extract found and could not judge, for lack of a peer; not to be believed. */
  public static List<String> arrived(Context context) {
    List<String> texts = context.get(ARRIVED);
    return texts == null ? List.of() : texts;
  }

  /**
   * The Context with the lineage moved out of baggage; throws nothing of its own (PROP-3, PROP-12). A scope is opened here
   * only where trust needs no peer ({@code all}, {@code key}); else a filter opens it.
   */
  @Override
  public <C> Context extract(Context given, C carrier, TextMapGetter<C> getter) {
    Context context = Inbound.withoutMember(inner.extract(given, carrier, getter));
    LineageScope running = LineageScope.in(given);
    if (running != null && !running.isClosed()) {
      // Some propagators begin with an empty Context: the scope of our filter must not fall out of it.
      return LineageScope.in(context) == running ? context : running.storeInContext(context);
    }
    Carriers.InboundHeaders came = Carriers.read(linesOf(carrier, getter));
    if (!came.hasLineage()) {
      return context;
    }
    TrustSettings trust = TrustSettings.inForce();
    if (trust.edge() || trust.trust() != Trust.ALL && trust.trust() != Trust.KEY) {
      return context.with(ARRIVED, came.texts());
    }
    Instant now = Instant.now();
    Decision caller = Judgement.responseOut(Caller.of(null, List.of()), trust);
    Gate.ReceivedLineage taken = Gate.take(
        came,
        text -> Judgement.requestIn(caller, text, trust, now),
        Direction.REQUEST_IN,
        "a propagator");
    LineageScope scope = LineageScope.create(taken.lineage(), ScopeKind.REQUEST);
    taken.noteIn(scope);
    return scope.storeInContext(context);
  }

  private static <C> List<Header> linesOf(C carrier, TextMapGetter<C> getter) {
    List<Header> lines = new ArrayList<>();
    if (carrier != null && getter != null) {
      for (String name : Carriers.ALL) {
        AnyOpenTelemetry.values(getter, carrier, name).forEachRemaining(value -> {
          if (value != null) {
            lines.add(new Header(name, value));
          }
        });
      }
    }
    return lines;
  }

  /** Writes the lineage where this very call was approved, or under {@code trust=all} (TRUST-25). */
  @Override
  public <C> void inject(Context context, C carrier, TextMapSetter<C> setter) {
    Approval approval = Approval.in(context);
    if (approval != null && approval.written() || isCarriedByAnother()) {
      inner.inject(context, carrier, setter);
      return;
    }
    String text = approval != null ? approval.text() : unapprovedText(context);
    Context quiet = new Approval(null, true).storeIn(context);
    if (text == null || setter == null) {
      inner.inject(quiet, carrier, setter);
      return;
    }
    boolean[] written = {false};
    inner.inject(quiet, carrier, (where, name, value) -> {
      if (!name.equalsIgnoreCase(Carriers.BAGGAGE_HEADER)) {
        setter.set(where, name, value);
        return;
      }
      written[0] = true;
      String line = Carriers.withMember(value, text);
      setter.set(where, name, line == null ? value : line);
      if (line == null) { // it would displace what the application propagates (PROP-9)
        setter.set(where, Carriers.LINEAGE_HEADER, text);
      }
    });
    writeOther(text, written[0], carrier, setter);
  }

  /** Whether this stands beside one that goes round a propagator of baggage. */
  private boolean isCarriedByAnother() {
    Formats global = Propagation.applicationFormats();
    return inner == TextMapPropagator.noop() && isInstalled() && (global.baggage() || global.jaeger());
  }

  /** What the application's own propagators have not written along with theirs. */
  private <C> void writeOther(String text, boolean written, C carrier, TextMapSetter<C> setter) {
    if (formats.baggage() && !written) { // it has no baggage of its own now
      setter.set(carrier, Carriers.BAGGAGE_HEADER, Carriers.withMember("", text));
    }
    if (formats.jaeger()) {
      setter.set(carrier, Carriers.JAEGER_HEADER, text);
    } else if (!formats.baggage()) {
      setter.set(carrier, Carriers.LINEAGE_HEADER, text);
    }
  }

  /** What leaves with a call that nobody has approved: nothing, but under {@code trust=all}. */
  private static String unapprovedText(Context context) {
    TrustSettings trust = TrustSettings.inForce();
    LineageScope scope = LineageScope.in(context);
    if (trust.trust() == Trust.ALL && !trust.edge()) {
      Lineage lineage = scope == null
          ? Gate.leavingOutside(Direction.REQUEST_OUT)
          : Gate.leavingWithCall(scope, "");
      return Gate.give(lineage, trust, Direction.REQUEST_OUT, scope);
    }
    if (scope != null && scope.lineage().hasContent() && trust.trust() != Trust.NONE) {
      Logs.warn(
          "AP404",
          "trust no approval",
          "did not send a lineage with a call of OpenTelemetry's own instrumentation: nothing says where it goes. Wrap "
              + "the client (AntipodeHttp.wrap), use Propagation.approve(host) round the call, or set ANTIPODE_TRUST=all.",
          "dropped");
    }
    return null;
  }

  /** The headers that it may set. */
  @Override
  public Collection<String> fields() {
    Set<String> fields = new LinkedHashSet<>(inner.fields());
    fields.add(Carriers.LINEAGE_HEADER);
    return fields;
  }

  @Override
  public String toString() {
    return "AntipodePropagator{" + inner + "}";
  }
}
