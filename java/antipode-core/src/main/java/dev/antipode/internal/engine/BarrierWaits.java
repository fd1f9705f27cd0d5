package dev.antipode.internal.engine;

import dev.antipode.Reach;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Visibility;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** The waits of one barrier for its writes, the last one at the servers that are known when it passes (BAR-65). */
final class BarrierWaits {
  private static final String CHANGED =
      "the store's servers changed until the deadline, and this one was not asked any more";

  private final Set<RegisteredStore> parked = new HashSet<>(0); // where an earlier wait was parked
  private volatile Plan plan;
  private WaitGroup group;
  private List<PendingWait> needs = List.of();

  BarrierWaits(Plan plan) {
    this.plan = plan;
  }

  /** Return the plan, with the servers that are known now. */
  Plan plan() {
    return plan;
  }

  /** Return the last wait; it began when the first did. */
  WaitGroup group() {
    return group;
  }

  /** Return those that the verdicts are told by. */
  List<PendingWait> needs() {
    return needs;
  }

  /** Return whether anything had to be waited for. */
  boolean waited() {
    return needs.stream().anyMatch(need -> need.parked);
  }

  /** Return a wait, to be parked by the plan: the first one, or the one that follows. */
  WaitGroup begin(Runnable onRelease) {
    WaitGroup next = new WaitGroup(plan.timeout(), group == null ? Ticks.now() : group.since, onRelease, false);
    next.looksTwice = plan.looksTwice();
    next.hasLost = this::hasLost;
    return next;
  }

  /** Return whether a server is none of those that are known by now. */
  private boolean hasLost(ServerEngine server) {
    Plan now = plan;
    return now.asked().stream()
        .filter(asked -> asked.store() == server.store() && Plan.isOutdated(asked))
        .anyMatch(asked -> !asked.store().isNamed(server, now.reach() == Reach.REPLICA));
  }

  /** Take what a wait came to; return false where another is to follow, by the new plan, under its deadline. */
  boolean take(WaitGroup ended) {
    group = ended;
    needs = ended.needs;
    if (!parked.isEmpty()) {
      needs.forEach(need -> need.parked |= parked.contains(need.server.store()));
    }
    if (ended.overloaded || !(ended.hasWaited() || plan.isOutdated())) {
      return true;
    }
    Plan now = plan.withServersNamedAnew();
    // Where a client was not known, nobody tells by the store's set which servers it was led to meanwhile.
    boolean isSame = now.asked().equals(plan.asked()) && needs.stream().noneMatch(need -> need.divided);
    return isSame || !goesOn(now);
  }

  private boolean goesOn(Plan now) {
    Set<ServerEngine> named = now.asked().stream().flatMap(asked -> asked.servers().stream()).collect(Collectors.toSet());
    List<PendingWait> failed = needs.stream().filter(BarrierWaits::fails).toList();
    boolean hasTime = ServerWaiting.patience(group) > 0;
    boolean isOutdated = group.isOutdated();
    if (!failed.isEmpty() && (!hasTime || !isOutdated && failed.stream().anyMatch(need -> named.contains(need.server)))) {
      return false;
    }
    List<PendingWait> judged = needs.stream().filter(need -> named.contains(need.server) && !need.divided).toList();
    Set<Map.Entry<ServerEngine, WriteId>> known =
        judged.stream().map(need -> Map.entry(need.server, need.writeId)).collect(Collectors.toSet());
    List<PendingWait> joined = new ArrayList<>();
    for (StoreRequest asked : now.asked()) {
      for (ServerEngine server : asked.servers()) {
        asked.ids().stream()
            .filter(id -> !known.contains(Map.entry(server, id)))
            .forEach(id -> joined.add(missed(id, server)));
      }
    }
    plan = now;
    // Where it ended before its time, or one had failed, nobody has looked whether the others' proofs stand.
    if (hasTime && (isOutdated || !(joined.isEmpty() && failed.isEmpty()))) {
      needs.stream().filter(need -> need.parked).forEach(need -> parked.add(need.server.store()));
      return true;
    }
    needs = new ArrayList<>(judged);
    needs.addAll(joined);
    return false;
  }

  /** Return whether the barrier does not pass for this need, whoever else joins. */
  private static boolean fails(PendingWait need) {
    return !(need.isVisible() || need.leftOut || need.divided);
  }

  /** Return the need of a server that joined too late to be asked. */
  private PendingWait missed(WriteId id, ServerEngine server) {
    PendingWait need = new PendingWait(id, server, group);
    need.answer = server instanceof Discovery unknown
        ? Visibility.unproven(CHANGED, unknown.kind())
        : Visibility.notYet(CHANGED);
    return need;
  }
}
