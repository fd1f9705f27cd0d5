package dev.antipode.internal.diagnostics.telemetry;

import dev.antipode.internal.store.Registry;
import dev.antipode.observer.Outcome;
import dev.antipode.shim.RegisteredStore;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.metrics.DoubleHistogram;
import io.opentelemetry.api.metrics.LongCounter;
import io.opentelemetry.api.metrics.LongHistogram;
import io.opentelemetry.api.metrics.Meter;
import io.opentelemetry.api.metrics.ObservableLongCounter;
import io.opentelemetry.api.metrics.ObservableLongGauge;
import io.opentelemetry.api.metrics.ObservableLongUpDownCounter;
import java.util.Map;

/** The instruments of one OpenTelemetry, by the names of OBS-2. */
final class Instruments {
  private static final AttributeKey<String> OUTCOME = AttributeKey.stringKey("antipode.outcome");
  private static final AttributeKey<String> STORE = AttributeKey.stringKey("antipode.store");
  private static final AttributeKey<String> REASON = AttributeKey.stringKey("antipode.reason");

  private final OpenTelemetry openTelemetry;

  /** Barriers that waited, in seconds. */
  final DoubleHistogram barrierDuration;

  /** Waits for one store, in seconds. */
  final DoubleHistogram waitDuration;

  /** Lag as seen by waits, in seconds. */
  final DoubleHistogram replicaLag;

  final LongCounter waitRequests;
  final LongHistogram lineageSize;
  final LongCounter lineageDropped;
  final LongCounter lineageIncomplete;
  final LongCounter writeLost;
  final LongCounter writeLate;
  final LongCounter fallbackCount;
  final LongCounter findingCount;
  private final ObservableLongCounter barrierCount;
  private final ObservableLongUpDownCounter barrierWaiting;
  private final ObservableLongGauge marks;

  Instruments(OpenTelemetry openTelemetry, Map<String, String> marksMissing) {
    this.openTelemetry = openTelemetry;
    Meter meter = openTelemetry.getMeter(Telemetry.INSTRUMENTATION);
    barrierDuration = seconds(meter, "antipode.barrier.duration", "Barriers that waited");
    waitDuration = seconds(meter, "antipode.wait.duration", "Waits for one store");
    replicaLag = seconds(meter, "antipode.replica.lag", "Lag as seen by waits");
    waitRequests = counter(meter, "antipode.wait.requests", "{request}", "Requests to servers for waiting");
    lineageSize = meter.histogramBuilder("antipode.lineage.size")
        .ofLongs().setUnit("By").setDescription("Size of lineages").build();
    lineageDropped = counter(meter, "antipode.lineage.dropped", "{lineage}", "Dropped lineages");
    lineageIncomplete =
        counter(meter, "antipode.lineage.incomplete", "{lineage}", "Lineages that became incomplete here");
    writeLost = counter(meter, "antipode.write.lost", "{write}", "Writes that no scope records");
    writeLate = counter(meter, "antipode.write.late", "{write}", "Writes after the header left");
    fallbackCount = counter(meter, "antipode.fallback.count", "{read}", "Fallback reads");
    findingCount = counter(meter, "antipode.finding.count", "{finding}", "Findings of dry-run");
    barrierCount = meter.counterBuilder("antipode.barrier.count")
        .setUnit("{barrier}").setDescription("Barriers").buildWithCallback(observed -> {
          for (Outcome outcome : Outcome.values()) {
            if (outcome.counted() > 0) {
              observed.record(outcome.counted(), Attributes.of(OUTCOME, outcome.word()));
            }
          }
        });
    barrierWaiting = meter.upDownCounterBuilder("antipode.barrier.waiting")
        .setUnit("{barrier}").setDescription("Parked barriers").buildWithCallback(observed -> {
          for (RegisteredStore store : Registry.current().all()) {
            observed.record(store.parked(), Attributes.of(STORE, store.name()));
          }
        });
    marks = meter.gaugeBuilder("antipode.marks.missing").ofLongs()
        .setUnit("{store}").setDescription("Stores that may not be marked").buildWithCallback(observed ->
            marksMissing.forEach(
                (store, reason) -> observed.record(1, Attributes.of(STORE, store, REASON, reason))));
  }

  private static DoubleHistogram seconds(Meter meter, String name, String about) {
    return meter.histogramBuilder(name).setUnit("s").setDescription(about).build();
  }

  private static LongCounter counter(Meter meter, String name, String unit, String about) {
    return meter.counterBuilder(name).setUnit(unit).setDescription(about).build();
  }

  OpenTelemetry openTelemetry() {
    return openTelemetry;
  }

  void close() {
    barrierCount.close();
    barrierWaiting.close();
    marks.close();
  }
}
