package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.Mode;
import dev.antipode.ScopeKind;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.observer.FollowedBarrier;
import dev.antipode.observer.ObservedScope;
import dev.antipode.observer.ObservedStore;
import dev.antipode.observer.Observer;
import dev.antipode.observer.ReadObserver;
import dev.antipode.observer.WriteSite;
import dev.antipode.shim.CallSite;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;

/** Writes records of what the lower rooms say, where that is the mode (spec REC). */
public final class DryRun implements Observer {
  /** Make one; {@link java.util.ServiceLoader} does. */
  public DryRun() {}

  private static boolean isOn() {
    return ProcessSettings.inForce().mode() == Mode.DRY_RUN;
  }

  /** Count requests and messages for the summaries (REC-16). */
  @Override
  public void onScopeOpened(ScopeKind kind) {
    Counts.opened(kind);
  }

  /** Count it for the summaries. */
  @Override
  public void onWriteBegun(String store) {
    Counts.add("writes", "", store);
  }

  /** Count it for the summaries. */
  @Override
  public void onBarrierEnforced() {
    Records.countEnforced();
  }

  @Override
  public ReadObserver observeRead(
      ObservedScope scope, ObservedStore store, Lineage lineage, Collection<Key> keys, boolean isSure) {
    return isSure && store.isDryRun() ? FollowedRead.of(store, keys) : null;
  }

  @Override
  public Consumer<FollowedBarrier.Ending> observeBarrier(FollowedBarrier barrier) {
    return BarrierRecords.begin(barrier);
  }

  @Override
  public void onLineageIncomplete(String reason, String store, ObservedScope scope, boolean isRecorded) {
    if (isRecorded && isOn()) {
      Findings.incomplete(reason, store, CallSite.current(), scope);
    }
  }

  @Override
  public void onIncompleteLineageReceived(String store, ObservedScope scope) {
    Findings.received(store, scope);
  }

  @Override
  public void onLineagePassedOn(ObservedScope scope, String target) {
    Findings.passedOn(scope, target);
  }

  /** Record it, once a write. */
  @Override
  public void onLineageLeftEarly(String site, List<WriteSite> uncommitted) {
    if (isOn()) {
      uncommitted.forEach(write -> Findings.publishedBeforeCommit(site, write.store(), write.site()));
    }
  }

  @Override
  public void onWriteConcurrent(String site, WriteSite write) {
    Findings.concurrentWrite(site, write.store(), write.site());
  }

  @Override
  public void onWriteLost(String reason, String store, String site) {
    if (!isOn()) {
      return;
    }
    if (reason.equals("orphan")) {
      Findings.orphan(site, store);
    } else {
      Findings.lateWrite(site, store, reason);
    }
  }

  @Override
  public void onWriteLate(String store, String site) {
    if (isOn()) {
      Findings.lateWrite(site, store, "sent");
    }
  }
}
