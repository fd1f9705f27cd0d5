package dev.antipode.internal.engine;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.PendingWrite;
import dev.antipode.shim.Visibility;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * One barrier, before anything is waited for.
 *
 * @param scope the current scope, or null
 * @param lineage what is waited for
 * @param asked the stores that are waited for
 * @param elsewhere stores of the lineage that this process has not registered
 * @param unregistered those that are unproven, and why: a misspelt one (BAR-6), one that {@code ANTIPODE_STORES} says this
 *     process will register (BAR-7), {@code antipode-branches} where a branch is open (BRANCH-18)
 * @param recorded stores in dry-run while the process enforces: followed and recorded, not waited for (BAR-49)
 * @param switchedOff stores in mode off: not judged, so that the result is not complete (BAR-49)
 * @param timeout nanoseconds
 * @param reach how far a pass has to hold
 * @param onTimeout what happens where a write is not visible in time
 * @param onUnproven what happens where no proof is possible
 * @param onVacuous what happens where nothing could be judged
 * @param requireComplete whether to fail also where something was left unjudged
 * @param dryRun whether only to look and record
 * @param expiredBranches branches that were open long ago: nobody knows what became of them (BRANCH-16)
 * @param names the stores named in the call; null where all registered ones are asked for
 * @param inDoubt where the scope's own lineage is judged: its writes to asked stores that are pending, or of unknown
 *     outcome (BAR-56)
 */
record Plan(
    LineageScope scope,
    Lineage lineage,
    List<StoreRequest> asked,
    List<String> elsewhere,
    Map<String, Visibility> unregistered,
    List<StoreRequest> recorded,
    List<String> switchedOff,
    long timeout,
    Reach reach,
    Policy onTimeout,
    Policy onUnproven,
    Policy onVacuous,
    boolean requireComplete,
    boolean dryRun,
    boolean expiredBranches,
    List<String> names,
    List<PendingWrite> inDoubt) {

  /** The same, for the stores in dry-run alone. */
  Plan ofRecorded() {
    return of(recorded);
  }

  /** Return the same for the servers that are known now (BAR-65). */
  Plan withServersNamedAnew() {
    boolean isOwn = reach == Reach.REPLICA;
    return of(asked.stream().map(each -> StoreRequest.of(each.store(), each.ids(), isOwn)).toList());
  }

  /** Return whether a judged store's set of servers has changed since they were named. */
  boolean isOutdated() {
    return asked.stream().anyMatch(Plan::isOutdated);
  }

  /** Return whether a store's set of servers has changed since they were named. */
  static boolean isOutdated(StoreRequest asked) {
    return asked.store().generation() != asked.generation();
  }

  private Plan of(List<StoreRequest> stores) {
    return new Plan(scope, lineage, stores, elsewhere, unregistered, recorded, switchedOff, timeout, reach, onTimeout,
        onUnproven, onVacuous, requireComplete, dryRun, expiredBranches, names, inDoubt);
  }

  /** The lineage has writes, and none of their stores is registered here (BAR-17). */
  boolean isVacuous() {
    return !elsewhere.isEmpty()
        && asked.isEmpty()
        && unregistered.isEmpty()
        && recorded.isEmpty()
        && switchedOff.isEmpty();
  }

  /** Something of the lineage is not judged, whatever the servers answer (BAR-15). */
  boolean leavesUnjudged() {
    return expiredBranches
        || !inDoubt.isEmpty()
        || !elsewhere.isEmpty()
        || !unregistered.isEmpty()
        || !switchedOff.isEmpty()
        || !(lineage.isComplete() || lineage.isComplete(askedNames()))
        || (scope != null && scope.gaps().stream().anyMatch(gap -> gap.reason().equals("seal")));
  }

  /** The stores whose marks of incompleteness count for {@code complete} (BAR-15, BAR-16). */
  Collection<String> askedNames() {
    Registry known = Registry.current();
    Collection<String> registered = names != null ? names : known.names();
    List<String> asked = new ArrayList<>(registered);
    lineage.incomplete().stream()
        .filter(each -> !Collections.disjoint(Twins.of(each, known), registered)) // BAR-6
        .forEach(asked::add);
    asked.add(Branches.STORE); // BRANCH-19
    return asked;
  }

  /** Return whether all servers are to have had the writes at one instant of the call (BAR-64). */
  boolean looksTwice() {
    return requireComplete && reach == Reach.REGION;
  }

  /** Only looked at, without waiting. */
  boolean looks() {
    return timeout == 0;
  }
}
