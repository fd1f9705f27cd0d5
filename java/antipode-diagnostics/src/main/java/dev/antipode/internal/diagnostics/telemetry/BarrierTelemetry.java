package dev.antipode.internal.diagnostics.telemetry;

import dev.antipode.Verdict;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.observer.Outcome;
import dev.antipode.observer.WaitedBarrier;
import dev.antipode.observer.WaitedBarrier.StoreWait;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The histograms and spans of a barrier that had to wait (OBS-1, OBS-2). */
final class BarrierTelemetry {
  private static final AttributeKey<String> OUTCOME = AttributeKey.stringKey("antipode.outcome");
  private static final AttributeKey<String> SITE = AttributeKey.stringKey("antipode.site");
  private static final AttributeKey<Boolean> DRY_RUN = AttributeKey.booleanKey("antipode.dry_run");
  private static final AttributeKey<Boolean> SATISFIED = AttributeKey.booleanKey("antipode.satisfied");
  private static final AttributeKey<Boolean> COMPLETE = AttributeKey.booleanKey("antipode.complete");
  private static final AttributeKey<String> POLICY = AttributeKey.stringKey("antipode.policy");
  private static final AttributeKey<String> STORE = AttributeKey.stringKey("antipode.store");
  private static final AttributeKey<String> STORE_KIND = AttributeKey.stringKey("antipode.store.kind");
  private static final AttributeKey<String> VERDICT = AttributeKey.stringKey("antipode.verdict");
  private static final AttributeKey<String> REACH = AttributeKey.stringKey("antipode.reach");
  private static final AttributeKey<String> REGION = AttributeKey.stringKey("antipode.region");
  private static final AttributeKey<String> ERROR = AttributeKey.stringKey("error.type");

  private BarrierTelemetry() {}

  /** Records a barrier that had to wait. */
  static void waited(WaitedBarrier barrier) {
    String site = Telemetry.bounded(barrier.site());
    String region = ProcessSettings.inForce().region();
    Instruments instruments = Telemetry.instruments();
    instruments.barrierDuration.record(
        seconds(barrier.result().waited().toNanos()),
        Attributes.of(OUTCOME, barrier.outcome().word(), SITE, site, DRY_RUN, barrier.isDryRun()));
    List<StoreWait> waits = barrier.waits();
    for (StoreWait wait : waits) {
      instruments.waitDuration.record(
          seconds(wait.nanos()),
          Attributes.of(STORE, wait.store(), STORE_KIND, wait.kind(),
              VERDICT, wait.verdict().word(), REACH, barrier.reach().word()));
      if (wait.isSeen()) {
        instruments.replicaLag.record(seconds(wait.nanos()), Attributes.of(STORE, wait.store(), REGION, region));
      }
    }
    if (Telemetry.isTraced()) {
      spans(barrier, site, region, waits);
    }
  }

  private static void spans(WaitedBarrier barrier, String site, String region, List<StoreWait> waits) {
    long end = TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis());
    long start = end - barrier.result().waited().toNanos();
    Tracer tracer = Telemetry.tracer();
    Span span = tracer.spanBuilder("antipode.barrier")
        .setParent(barrier.context())
        .setStartTimestamp(start, TimeUnit.NANOSECONDS)
        .setAttribute(REACH, barrier.reach().word())
        .setAttribute(REGION, region)
        .setAttribute(SATISFIED, barrier.result().satisfied())
        .setAttribute(COMPLETE, barrier.result().complete())
        .setAttribute(SITE, site)
        .setAttribute(DRY_RUN, barrier.isDryRun())
        .setAttribute(POLICY, barrier.onTimeout().word())
        .startSpan();
    Context inside = barrier.context().with(span);
    for (StoreWait wait : waits) {
      Span child = tracer.spanBuilder("antipode.wait")
          .setParent(inside)
          .setStartTimestamp(start, TimeUnit.NANOSECONDS)
          .setAttribute(REACH, barrier.reach().word())
          .setAttribute(REGION, region)
          .setAttribute(STORE, wait.store())
          .setAttribute(STORE_KIND, wait.kind())
          .setAttribute(VERDICT, wait.verdict().word())
          .startSpan();
      if (wait.verdict() != Verdict.VISIBLE) {
        failed(child, wait.verdict().word());
      }
      child.end(start + wait.nanos(), TimeUnit.NANOSECONDS);
    }
    if (barrier.outcome() != Outcome.SATISFIED) {
      failed(span, barrier.outcome().word());
    }
    span.end(end, TimeUnit.NANOSECONDS);
  }

  private static void failed(Span span, String kind) {
    span.setAttribute(ERROR, kind);
    span.setStatus(StatusCode.ERROR);
  }

  private static double seconds(long nanos) {
    return nanos / 1e9;
  }
}
