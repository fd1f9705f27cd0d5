package dev.antipode.internal.diagnostics.telemetry;

import dev.antipode.observer.ObservedScope;
import dev.antipode.observer.Observer;
import dev.antipode.observer.WaitedBarrier;
import dev.antipode.observer.WriteSite;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import java.util.List;

/** Counts and measures what the lower rooms say (OBS-2). */
public final class TelemetryObserver implements Observer {
  private static final AttributeKey<String> REASON = AttributeKey.stringKey("antipode.reason");
  private static final AttributeKey<String> DIRECTION = AttributeKey.stringKey("antipode.direction");
  private static final AttributeKey<String> STORE = AttributeKey.stringKey("antipode.store");
  private static final AttributeKey<String> SITE = AttributeKey.stringKey("antipode.site");
  private static final AttributeKey<String> OUTCOME = AttributeKey.stringKey("antipode.outcome");
  private static final AttributeKey<String> PURPOSE = AttributeKey.stringKey("antipode.purpose");

  /** Make one; {@link java.util.ServiceLoader} does. */
  public TelemetryObserver() {}

  @Override
  public void onLineageDropped(String reason, String direction) {
    Telemetry.instruments().lineageDropped.add(1, Attributes.of(REASON, reason, DIRECTION, direction));
  }

  @Override
  public void onLineageIncomplete(String reason, String store, ObservedScope scope, boolean isRecorded) {
    Telemetry.instruments().lineageIncomplete.add(1, Attributes.of(REASON, reason, STORE, Telemetry.known(store)));
  }

  @Override
  public void onLineageSized(String direction, int length) {
    Telemetry.instruments().lineageSize.record(length, Attributes.of(DIRECTION, direction));
  }

  /** Count one finding, however many writes there are. */
  @Override
  public void onLineageLeftEarly(String site, List<WriteSite> uncommitted) {
    Telemetry.finding("published_before_commit", site);
  }

  @Override
  public void onWriteLost(String reason, String store, String site) {
    Telemetry.instruments().writeLost.add(
        1, Attributes.of(REASON, reason, STORE, Telemetry.known(store), SITE, Telemetry.bounded(site)));
  }

  @Override
  public void onWriteLate(String store, String site) {
    Telemetry.instruments().writeLate.add(
        1, Attributes.of(STORE, Telemetry.known(store), SITE, Telemetry.bounded(site)));
  }

  @Override
  public void onFallback(String outcome) {
    Telemetry.instruments().fallbackCount.add(1, Attributes.of(OUTCOME, outcome));
  }

  @Override
  public void onServerAsked(String store, String purpose) {
    Telemetry.instruments().waitRequests.add(1, Attributes.of(STORE, store, PURPOSE, purpose));
  }

  @Override
  public void onMarksMissing(String store, String reason) {
    Telemetry.marksMissing(store, reason);
  }

  @Override
  public boolean wantsBarrierSites() {
    return Telemetry.isCollected();
  }

  @Override
  public void onBarrierWaited(WaitedBarrier barrier) {
    if (Telemetry.isCollected()) {
      BarrierTelemetry.waited(barrier);
    }
  }
}
