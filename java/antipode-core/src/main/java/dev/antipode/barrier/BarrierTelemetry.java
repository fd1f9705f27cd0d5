package dev.antipode.barrier;

import dev.antipode.BarrierResult;
import dev.antipode.StoreResult;
import dev.antipode.Verdict;
import dev.antipode.configuration.ProcessSettings;
import dev.antipode.telemetry.CallSite;
import dev.antipode.telemetry.Instruments;
import dev.antipode.telemetry.Outcome;
import dev.antipode.telemetry.Telemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import java.util.ArrayList;
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

  /** What a barrier's wait for one store came to; {@code seen}: the last of its servers had everything then. */
  private record Wait(Asked asked, Verdict verdict, long nanos, boolean seen) {}

  private BarrierTelemetry() {}

  /**
   * A barrier had to wait. Ten thousand may be released at once, so that nothing is made ready where nobody collects.
   *
   * @param parent the Context of the caller
   * @param knownSite where it was called, or null where this is the caller's own thread
   */
  static void waited(
      BarrierWaits came, BarrierResult result, Outcome outcome, Context parent, String knownSite) {
    if (!Telemetry.isCollected()) {
      return;
    }
    Plan plan = came.plan();
    String site = Telemetry.bounded(knownSite == null ? CallSite.current() : knownSite);
    String region = ProcessSettings.inForce().region();
    Instruments instruments = Telemetry.instruments();
    instruments.barrierDuration.record(
        seconds(result.waited().toNanos()),
        Attributes.of(OUTCOME, outcome.word(), SITE, site, DRY_RUN, plan.dryRun()));
    List<Wait> waits = waitsOf(plan, result, came.needs());
    for (Wait wait : waits) {
      String store = wait.asked.store().name();
      instruments.waitDuration.record(
          seconds(wait.nanos),
          Attributes.of(STORE, store, STORE_KIND, wait.asked.store().kind(),
              VERDICT, wait.verdict.word(), REACH, plan.reach().word()));
      if (wait.seen) {
        instruments.replicaLag.record(seconds(wait.nanos), Attributes.of(STORE, store, REGION, region));
      }
    }
    if (Telemetry.isTraced()) {
      spans(plan, result, outcome, parent, site, region, waits);
    }
  }

  private static void spans(
      Plan plan, BarrierResult result, Outcome outcome, Context parent, String site, String region, List<Wait> waits) {
    long end = TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis());
    long start = end - result.waited().toNanos();
    Tracer tracer = Telemetry.tracer();
    Span span = tracer.spanBuilder("antipode.barrier")
        .setParent(parent)
        .setStartTimestamp(start, TimeUnit.NANOSECONDS)
        .setAttribute(REACH, plan.reach().word())
        .setAttribute(REGION, region)
        .setAttribute(SATISFIED, result.satisfied())
        .setAttribute(COMPLETE, result.complete())
        .setAttribute(SITE, site)
        .setAttribute(DRY_RUN, plan.dryRun())
        .setAttribute(POLICY, plan.onTimeout().word())
        .startSpan();
    Context inside = parent.with(span);
    for (Wait wait : waits) {
      Span child = tracer.spanBuilder("antipode.wait")
          .setParent(inside)
          .setStartTimestamp(start, TimeUnit.NANOSECONDS)
          .setAttribute(REACH, plan.reach().word())
          .setAttribute(REGION, region)
          .setAttribute(STORE, wait.asked.store().name())
          .setAttribute(STORE_KIND, wait.asked.store().kind())
          .setAttribute(VERDICT, wait.verdict.word())
          .startSpan();
      if (wait.verdict != Verdict.VISIBLE) {
        failed(child, wait.verdict.word());
      }
      child.end(start + wait.nanos, TimeUnit.NANOSECONDS);
    }
    if (outcome != Outcome.SATISFIED) {
      failed(span, outcome.word());
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

  private static List<Wait> waitsOf(Plan plan, BarrierResult result, List<Need> needs) {
    List<Wait> waits = new ArrayList<>();
    for (Asked asked : plan.asked()) {
      List<Need> own = needs.stream().filter(need -> need.server.store() == asked.store()).toList();
      if (own.stream().noneMatch(need -> need.parked)) {
        continue; // every write to it was seen at once
      }
      if (result.satisfied() && own.stream().noneMatch(need -> need.leftOut)) {
        waits.add(new Wait(asked, Verdict.VISIBLE, Judgement.late(own), true));
      } else {
        StoreResult judged = result.stores().get(asked.store().name());
        waits.add(new Wait(asked, judged.verdict(), judged.waited().toNanos(), false));
      }
    }
    return waits;
  }
}
