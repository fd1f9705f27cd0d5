package dev.antipode.internal.engine;

import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.scope.UnflushedChanges;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.Outcome;
import java.util.ArrayList;
import java.util.List;

/** A barrier that repeats what was just proved, without I/O, span or instrument (BAR-33 to BAR-36). */
final class FreePath {
  /** One position that has to hold at one server. */
  private record RequiredPosition(ServerEngine server, String epoch, long counter) {}

  /** One store as it was when the barrier passed. */
  private record KnownStore(RegionStore store, int generation) {}

  /** What the last barrier of a scope proved, for repeating it in O(1). */
  private record Proof(
      Lineage lineage,
      long registryGeneration,
      int settingsGeneration,
      KnownStore[] stores,
      RequiredPosition[] needs,
      BarrierResult result) {}

  private FreePath() {}

  /**
   * The result of repeating the current scope's barrier while its proofs are fresh; null where it has to be asked.
   * Options out of the ordinary are left to the long way, which refuses mistakes.
   */
  static BarrierResult pass(BarrierOptions options) {
    LineageScope scope = LineageScope.current();
    if (scope == null
        || !(scope.proof() instanceof Proof proof)
        || !UnflushedChanges.inDoubt(scope).isEmpty() // before the lineage: what ends in between is in that
        || proof.lineage != scope.held()
        || proof.registryGeneration != Registry.current().generation()
        || proof.settingsGeneration != ProcessSettings.generation()
        || (options != BarrierOptions.defaults() && !isPlain(options))) {
      return null;
    }
    long now = Ticks.now();
    long proved = 0;
    for (RequiredPosition need : proof.needs) {
      int generation = need.server.generationOfProof(need.epoch, need.counter, now);
      if (generation < 0) {
        return null;
      }
      proved += generation;
    }
    for (KnownStore each : proof.stores) {
      // In this order: servers that are named behind the first look are another generation's.
      if (each.store.isDiscoveryDue(now) || each.store.generation() != each.generation) {
        return null;
      }
    }
    // Generations only grow: where their sum is that of the proofs, all proofs stood when the last one was looked up (BAR-63).
    for (RequiredPosition need : proof.needs) {
      proved -= need.server.generation();
    }
    if (proved != 0) {
      return null;
    }
    Outcome.FREE.count();
    BarrierLog log = BarrierLog.current();
    if (log != null) {
      for (KnownStore each : proof.stores) {
        log.note(each.store.name());
      }
    }
    return proof.result;
  }

  private static boolean isPlain(BarrierOptions options) {
    return options.lineage() == null
        && options.stores() == null
        && options.reach() == null
        && !options.requireComplete()
        && !options.dryRun()
        && (options.timeout() == null || options.timeout().compareTo(Planner.LONG) <= 0)
        && isPlain(options.onTimeout())
        && options.onTimeout() != Policy.AS_TIMEOUT
        && isPlain(options.onUnproven())
        && isPlain(options.onVacuous())
        && options.onVacuous() != Policy.AS_TIMEOUT;
  }

  private static boolean isPlain(Policy policy) {
    return policy != Policy.REDELIVER;
  }

  /** Keeps the proof of a whole pass over positions in the scope, where the next barrier finds it. */
  static void remember(Plan plan, BarrierResult result) {
    LineageScope scope = plan.scope();
    if (scope == null
        || plan.names() != null
        || plan.reach() != Reach.REGION
        || plan.lineage() != scope.held()
        || plan.isVacuous()
        || !plan.inDoubt().isEmpty()
        || !plan.recorded().isEmpty()) {
      return;
    }
    List<RequiredPosition> needs = new ArrayList<>();
    for (StoreRequest asked : plan.asked()) {
      if (!asked.gone().isEmpty()) {
        return;
      }
      for (WriteId id : asked.ids()) {
        if (!id.isPosition()) {
          return;
        }
        Ordered version = (Ordered) id.version();
        for (ServerEngine server : asked.servers()) {
          needs.add(new RequiredPosition(server, version.epoch(), version.counter()));
        }
      }
    }
    KnownStore[] stores = plan.asked().stream()
        .map(asked -> new KnownStore(asked.store(), asked.generation()))
        .toArray(KnownStore[]::new);
    scope.proof(new Proof(
        plan.lineage(),
        Registry.current().generation(),
        ProcessSettings.generation(),
        stores,
        needs.toArray(RequiredPosition[]::new),
        new BarrierResult.Builder(result).build()));
  }
}
