package dev.antipode.internal.diagnostics.telemetry;

import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.Outcome;
import dev.antipode.observer.TelemetryTarget;
import dev.antipode.shim.CallSite;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.metrics.MeterProvider;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.TracerProvider;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Metrics and spans by OpenTelemetry (spec OBS). Nothing here is called on the barrier's free path. Names, units and
 * attributes are those of the specification; without an OpenTelemetry SDK all of it does nothing (OBS-10).
 */
public final class Telemetry {
  /** The name of the tracer and of the meter. */
  static final String INSTRUMENTATION = "dev.antipode";

  private static final int MOST_SITES = 1000;
  private static final AttributeKey<String> SITE = AttributeKey.stringKey("antipode.site");
  private static final AttributeKey<String> KIND = AttributeKey.stringKey("antipode.kind");

  private static final Set<String> SITES = ConcurrentHashMap.newKeySet();
  private static final Map<String, String> MARKS_MISSING = new ConcurrentHashMap<>();
  private static volatile Instruments instruments;

  private Telemetry() {}

  /** The instruments of the OpenTelemetry in use, which an application may set after we have begun. */
  static Instruments instruments() {
    OpenTelemetry now = TelemetryTarget.openTelemetry();
    Instruments known = instruments;
    if (known != null && known.openTelemetry() == now) {
      return known;
    }
    synchronized (Telemetry.class) {
      known = instruments;
      if (known == null || known.openTelemetry() != now) {
        if (known != null) {
          known.close();
        }
        known = new Instruments(now, MARKS_MISSING);
        instruments = known;
      }
      return known;
    }
  }

  /** The tracer of the {@code antipode.barrier} and {@code antipode.wait} spans. */
  static Tracer tracer() {
    return TelemetryTarget.openTelemetry().getTracer(INSTRUMENTATION);
  }

  /** Whether spans are collected by anybody. */
  static boolean isTraced() {
    return TelemetryTarget.openTelemetry().getTracerProvider() != TracerProvider.noop();
  }

  /** Whether spans or metrics are collected by anybody. */
  static boolean isCollected() {
    return isTraced() || TelemetryTarget.openTelemetry().getMeterProvider() != MeterProvider.noop();
  }

  /** Makes the instruments, so that the observable ones are read even where no other is ever called. */
  static void start() {
    instruments();
  }

  /** A call site as an attribute: past so many different ones, {@code other} (OBS-6). */
  public static String bounded(String site) {
    if (SITES.contains(site)) {
      return site;
    }
    return SITES.size() < MOST_SITES && SITES.add(site) ? site : SITES.contains(site) ? site : CallSite.UNKNOWN;
  }

  /** A store as an attribute: names come over the wire, so that of one that is unknown here is {@code other} (OBS-13). */
  static String known(String store) {
    boolean isKnown = store.isEmpty()
        || Registry.current().get(store) != null
        || ProcessSettings.inForce().stores().contains(store);
    return isKnown ? store : CallSite.UNKNOWN;
  }

  /** Keep why this process may not mark a store's epochs; null: it may (EPOCH-26). */
  static void marksMissing(String store, String reason) {
    start();
    if (reason == null) {
      MARKS_MISSING.remove(store);
    } else {
      MARKS_MISSING.put(store, reason);
    }
  }

  /** Forgets instruments and counts (tests). */
  public static void reset() {
    synchronized (Telemetry.class) {
      if (instruments != null) {
        instruments.close();
      }
      instruments = null;
    }
    Outcome.reset();
    SITES.clear();
    MARKS_MISSING.clear();
  }

  /** Dry-run found something: {@code behind}, {@code stale}, {@code published_before_commit}. */
  public static void finding(String kind, String site) {
    instruments().findingCount.add(1, Attributes.of(KIND, kind, SITE, bounded(site)));
  }
}
