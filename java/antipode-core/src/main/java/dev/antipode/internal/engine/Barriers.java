package dev.antipode.internal.engine;

import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Gap;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.StoreResult;
import dev.antipode.Verdict;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.model.Display;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.Observers;
import dev.antipode.observer.Outcome;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.Logs;
import dev.antipode.shim.PendingWrite;
import io.opentelemetry.context.Context;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** What {@code Antipode.barrier} and {@code Antipode.barrierAsync} do (paper section 5.2, spec BAR). */
public final class Barriers {
  private static final BarrierResult PASSED_THROUGH =
      new BarrierResult.Builder(true).leftUnjudged(true).off(null).build();

  private Barriers() {}

  /** Blocks until the writes of the lineage are visible here, or says why not. */
  public static BarrierResult barrier(BarrierOptions options) {
    EventLoops.refuse();
    BarrierResult passed = FreePath.pass(options);
    if (passed != null) {
      return passed;
    }
    if (ProcessSettings.inForce().mode() == Mode.OFF) {
      return PASSED_THROUGH;
    }
    Plan plan = begin(options);
    if (plan.dryRun()) {
      return recordOnly(plan);
    }
    return finish(ServerWaiting.block(plan), Context.current(), null);
  }

  /** The same without a thread that waits. What is wrong with the call itself is thrown at once. */
  public static CompletableFuture<BarrierResult> barrierAsync(BarrierOptions options) {
    BarrierResult passed = FreePath.pass(options);
    if (passed != null) {
      return CompletableFuture.completedFuture(passed);
    }
    if (ProcessSettings.inForce().mode() == Mode.OFF) {
      return CompletableFuture.completedFuture(PASSED_THROUGH);
    }
    Plan plan = begin(options);
    return plan.dryRun()
        ? CompletableFuture.completedFuture(recordOnly(plan))
        : BarrierFuture.start(plan, options.executor());
  }

  private static Plan begin(BarrierOptions options) {
    Plan plan = Planner.plan(LineageScope.current(), options);
    BarrierLog log = BarrierLog.current();
    if (log != null) {
      plan.asked().forEach(asked -> log.note(asked.store().name()));
    }
    if (!plan.dryRun() && !plan.recorded().isEmpty()) {
      FollowedBarriers.follow(plan.ofRecorded(), CallSite.current());
    }
    return plan;
  }

  /** What both forms do when the wait is over; throws what the policies say. */
  static BarrierResult finish(BarrierWaits waits, Context context, String site) {
    Plan plan = waits.plan();
    long waited = Ticks.now() - waits.group().since;
    List<PendingWait> needs = waits.needs();
    boolean looked = plan.looks();
    BarrierResult result;
    boolean leftOut = false;
    // A store without a single server has nothing to ask, and no needs: that is no pass.
    if (plan.unregistered().isEmpty()
        && needs.stream().allMatch(PendingWait::isVisible)
        && plan.asked().stream().allMatch(asked -> !asked.servers().isEmpty() && asked.gone().isEmpty())) {
      result = result(plan, true, waited, () -> Judgement.judge(plan, needs, waited, looked), false, false);
    } else {
      Map<String, StoreResult> verdicts = Judgement.judge(plan, needs, waited, looked);
      boolean satisfied = plan.unregistered().isEmpty()
          && plan.asked().stream()
              .allMatch(asked -> verdicts.get(asked.store().name()).verdict() == Verdict.VISIBLE);
      leftOut = hasLeftOut(verdicts);
      result = result(plan, satisfied, waited, () -> verdicts, leftOut, false);
    }
    tell(waits, result, context, site);
    if (result.satisfied() && !leftOut) {
      FreePath.remember(plan, result);
      if (!plan.asked().isEmpty()) {
        Observers.events().onBarrierEnforced();
      }
    }
    Enforcement.enforce(plan, result);
    return result;
  }

  private static boolean hasLeftOut(Map<String, StoreResult> verdicts) {
    return verdicts.values().stream().anyMatch(store -> !store.leftOut().isEmpty());
  }

  private static BarrierResult result(
      Plan plan,
      boolean satisfied,
      long waited,
      Supplier<Map<String, StoreResult>> verdicts,
      boolean leftOut,
      boolean dryRun) {
    boolean unjudged = leftOut || dryRun || !plan.recorded().isEmpty() || plan.leavesUnjudged();
    return new BarrierResult.Builder(satisfied)
        .waited(Duration.ofNanos(waited))
        .vacuous(plan.isVacuous())
        .dryRun(dryRun)
        .judge(verdicts)
        .leftUnjudged(unjudged)
        .off(plan.switchedOff())
        .gaps(gapsOf(plan))
        .build();
  }

  private static List<Gap> gapsOf(Plan plan) {
    List<Gap> gaps = new ArrayList<>(plan.scope() == null ? List.of() : plan.scope().gaps());
    plan.inDoubt().stream().map(Barriers::inDoubt).distinct().forEach(gaps::add);
    if (plan.expiredBranches()) {
      gaps.add(new Gap("branch", "", Branches.EXPIRED));
    }
    return gaps;
  }

  private static Gap inDoubt(PendingWrite write) {
    String state = write.isUnknown() ? "its outcome is not known" : "it has not been answered, or not been committed";
    return new Gap("pending", write.store(), "a write of this scope: " + state);
  }

  /** Counts a barrier, and makes its spans if something had to be waited for (OBS-1, OBS-9). */
  private static void tell(BarrierWaits waits, BarrierResult result, Context context, String site) {
    Plan plan = waits.plan();
    boolean waited = waits.waited();
    Outcome outcome = outcome(plan, result, waits.group());
    (waited || outcome != Outcome.SATISFIED ? outcome : Outcome.FREE).count();
    if (plan.isVacuous()) {
      warnVacuous(plan, site == null ? CallSite.current() : site);
    }
    if (waited) {
      Observers.events().onBarrierWaited(new EndedBarrier(waits, result, outcome, context, site));
    }
  }

  private static Outcome outcome(Plan plan, BarrierResult result, WaitGroup group) {
    if (result.vacuous()) {
      return Outcome.VACUOUS;
    }
    if (result.satisfied()) {
      return plan.requireComplete() && !result.complete() ? Outcome.INCOMPLETE : Outcome.SATISFIED;
    }
    if (group.overloaded) {
      return Outcome.OVERLOADED;
    }
    boolean lost = result.stores().values().stream().anyMatch(store -> store.verdict() == Verdict.UNPROVEN);
    return lost ? Outcome.UNPROVEN : Outcome.TIMED_OUT;
  }

  /** Says once a minute and site that a barrier judged nothing, with both lists of names (BAR-20). */
  private static void warnVacuous(Plan plan, String site) {
    Logs.warn(
        "AP604",
        "vacuous " + site,
        ("a barrier judged nothing: the lineage has writes to %s; registered in this process: %s. If these are one "
                + "store, give it one name. site=%s")
            .formatted(
                Display.shown(plan.elsewhere()), String.join(", ", Registry.current().names()), site));
  }

  /** Waits for nothing and enforces nothing: what is not visible is followed in the background and recorded. */
  private static BarrierResult recordOnly(Plan plan) {
    String site = CallSite.current();
    if (plan.isVacuous()) {
      warnVacuous(plan, site);
    }
    List<PendingWait> needs = FollowedBarriers.follow(plan, site);
    Map<String, StoreResult> verdicts = Judgement.judge(plan, needs, 0, true);
    (plan.isVacuous() ? Outcome.VACUOUS : Outcome.SATISFIED).count();
    return result(plan, true, 0, () -> verdicts, hasLeftOut(verdicts), true);
  }
}
