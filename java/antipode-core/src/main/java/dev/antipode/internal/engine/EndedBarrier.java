package dev.antipode.internal.engine;

import dev.antipode.BarrierResult;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.StoreResult;
import dev.antipode.Verdict;
import dev.antipode.observer.Outcome;
import dev.antipode.observer.WaitedBarrier;
import dev.antipode.shim.CallSite;
import io.opentelemetry.context.Context;
import java.util.ArrayList;
import java.util.List;

/**
 * A barrier that had to wait, as observers are told.
 *
 * @param ended its waits
 * @param knownSite where it was called; null where this is the caller's own thread
 */
record EndedBarrier(BarrierWaits ended, BarrierResult result, Outcome outcome, Context context, String knownSite)
    implements WaitedBarrier {
  @Override
  public Reach reach() {
    return ended.plan().reach();
  }

  @Override
  public boolean isDryRun() {
    return ended.plan().dryRun();
  }

  @Override
  public Policy onTimeout() {
    return ended.plan().onTimeout();
  }

  @Override
  public String site() {
    return knownSite == null ? CallSite.current() : knownSite;
  }

  @Override
  public List<StoreWait> waits() {
    List<StoreWait> waits = new ArrayList<>();
    for (StoreRequest asked : ended.plan().asked()) {
      List<PendingWait> own = ended.needs().stream().filter(need -> need.server.store() == asked.store()).toList();
      if (own.stream().noneMatch(need -> need.parked)) {
        continue; // every write to it was seen at once
      }
      if (result.satisfied() && own.stream().noneMatch(need -> need.leftOut)) {
        waits.add(waitOf(asked, Verdict.VISIBLE, Judgement.late(own), true));
      } else {
        StoreResult judged = result.stores().get(asked.store().name());
        waits.add(waitOf(asked, judged.verdict(), judged.waited().toNanos(), false));
      }
    }
    return waits;
  }

  private static StoreWait waitOf(StoreRequest asked, Verdict verdict, long nanos, boolean isSeen) {
    return new StoreWait(asked.store().name(), asked.store().kind(), verdict, nanos, isSeen);
  }
}
