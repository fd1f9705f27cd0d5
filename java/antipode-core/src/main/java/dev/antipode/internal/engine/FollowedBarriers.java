package dev.antipode.internal.engine;

import dev.antipode.Reach;
import dev.antipode.Verdict;
import dev.antipode.observer.FollowedBarrier;
import dev.antipode.observer.ObservedScope;
import dev.antipode.observer.Observers;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.function.Consumer;

/** Barriers of dry-run: nobody waits, and what was not visible is followed until it is, for 30 s at most (REC-5). */
final class FollowedBarriers {
  private FollowedBarriers() {}

  /** A barrier of this plan, as observers have it. */
  private record Call(Plan plan, String site) implements FollowedBarrier {
    @Override
    public ObservedScope scope() {
      return plan.scope();
    }

    @Override
    public Reach reach() {
      return plan.reach();
    }

    @Override
    public boolean isVacuous() {
      return plan.isVacuous();
    }

    @Override
    public List<String> elsewhere() {
      return plan.elsewhere();
    }
  }

  /**
   * Follows a barrier's writes with nobody waiting: when all are seen, or after 30 s, observers are told what was found.
   *
   * @return what is looked for; empty where too much is followed already
   */
  static List<PendingWait> follow(Plan plan, String site) {
    Consumer<FollowedBarrier.Ending> observer = Observers.events().observeBarrier(new Call(plan, site));
    Consumer<FollowedBarrier.Ending> told = observer == null ? ending -> {} : observer;
    boolean unjudged = plan.leavesUnjudged(); // by now: the scope goes on
    FollowedWrites followed = FollowRegistry.follow(plan.asked(), writes -> told.accept(ending(plan, writes, unjudged)));
    if (followed == null) { // this one is not followed, and its record says that nobody knows
      told.accept(ending(plan, List.of(), unjudged));
      return List.of();
    }
    BarrierObservation.keep(plan, site);
    return followed.needs();
  }

  /** What a barrier would have said without waiting (REC-5). */
  private static FollowedBarrier.Ending ending(Plan plan, List<FollowedWrite> writes, boolean unjudged) {
    List<FollowedBarrier.StoreLook> stores = new ArrayList<>();
    boolean allSeen = plan.unregistered().isEmpty();
    for (StoreRequest asked : plan.asked()) {
      List<FollowedWrite> own = writes.stream().filter(write -> write.server().store() == asked.store()).toList();
      Verdict verdict = verdict(asked, own);
      stores.add(new FollowedBarrier.StoreLook(
          asked.store().name(),
          asked.store().kind(),
          verdict,
          new TreeSet<>(own.stream().map(write -> write.server().address()).toList()),
          FollowedWrite.visibleAfter(judged(own))));
      allSeen &= verdict == Verdict.VISIBLE;
    }
    for (String name : plan.unregistered().keySet()) { // open branches, too: nobody knows what is to come
      stores.add(unfollowed(name, Verdict.UNPROVEN));
    }
    for (String name : plan.elsewhere()) {
      stores.add(unfollowed(name, Verdict.ELSEWHERE));
    }
    boolean leftOut = writes.stream().anyMatch(FollowedWrite::isLeftOut);
    return new FollowedBarrier.Ending(allSeen, allSeen && !unjudged && !leftOut, stores);
  }

  /** What a barrier would have found of one store; a server that does not answer is left out, as by a barrier. */
  private static Verdict verdict(StoreRequest asked, List<FollowedWrite> writes) {
    List<FollowedWrite> judged = judged(writes);
    if (judged.stream().anyMatch(FollowedWrite::isLate)) {
      return Verdict.NOT_YET;
    }
    if (judged.size() < writes.size() && Judgement.failsWithoutReplica(asked)) {
      return Verdict.UNPROVEN;
    }
    boolean seen = !judged.isEmpty() && judged.stream().allMatch(FollowedWrite::wasThereAtOnce);
    return seen ? Verdict.VISIBLE : Verdict.UNPROVEN;
  }

  private static List<FollowedWrite> judged(List<FollowedWrite> writes) {
    return writes.stream().filter(write -> !write.isLeftOut()).toList();
  }

  private static FollowedBarrier.StoreLook unfollowed(String name, Verdict verdict) {
    return new FollowedBarrier.StoreLook(name, null, verdict, List.of(), null);
  }
}
