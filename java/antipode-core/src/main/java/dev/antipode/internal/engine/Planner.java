package dev.antipode.internal.engine;

import dev.antipode.BarrierOptions;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.Settings;
import dev.antipode.UnprovenKind;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.scope.UnflushedChanges;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.Observers;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.Logs;
import dev.antipode.shim.PendingWrite;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Visibility;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Checks a barrier's call and takes its lineage apart by store. The programmer's mistakes throw here, at once. */
final class Planner {
  /** A longer deadline is probably one in milliseconds (BAR-58). */
  static final Duration LONG = Duration.ofSeconds(60);

  private static final Visibility EXPECTED =
      Visibility.unproven("listed in ANTIPODE_STORES, and not registered yet", UnprovenKind.NOT_OPENED);
  private static final Visibility OPEN_BRANCHES = Visibility.unproven(Branches.REASON);

  private Planner() {}

  static Plan plan(LineageScope scope, BarrierOptions options) {
    Settings now = ProcessSettings.inForce();
    Lineage lineage = options.lineage();
    List<PendingWrite> inDoubt = List.of();
    if (lineage == null) {
      if (scope == null) {
        throw new ConfigurationException(
            "AP101",
            "Antipode.barrier() was called outside any scope, so there is no lineage to wait for. Add a middleware, "
                + "open Antipode.scope(), or give it a lineage. (site: " + CallSite.current() + ")");
      }
      // Before the lineage: what ends in between is in doubt once too often, not once too few.
      inDoubt = UnflushedChanges.inDoubt(scope);
      lineage = scope.held();
    }
    Registry known = Registry.current();
    if (known.all().isEmpty() && now.stores().isEmpty()) {
      throw new ConfigurationException(
          "AP108",
          "Antipode.barrier() was called in a process that has registered no store: wrap a client, or register the "
              + "store that it should wait for. (site: " + CallSite.current() + ")");
    }
    Observers.events().onWorkBegun();
    List<String> names = options.stores();
    if (names != null) {
      if (names.isEmpty()) {
        throw new ConfigurationException(
            "AP112", "stores() asks for nothing, and would always pass: name stores, or leave stores out");
      }
      names.forEach(known::need);
      inDoubt = inDoubt.stream().filter(write -> names.contains(write.store())).toList();
    }
    Reach reach = checkedReach(options.reach());
    boolean isOwn = reach == Reach.REPLICA;
    List<StoreRequest> asked = new ArrayList<>(2);
    List<String> elsewhere = new ArrayList<>(0);
    Map<String, Visibility> unregistered = new LinkedHashMap<>(0);
    List<StoreRequest> recorded = new ArrayList<>(0);
    List<String> switchedOff = new ArrayList<>(0);
    boolean dryRun = options.dryRun() || now.mode() == Mode.DRY_RUN;
    boolean expiredBranches = false;
    for (String name : lineage.stores()) {
      if (name.equals(Branches.STORE)) {
        if (Branches.anyOpen(lineage, Clock.systemUTC())) {
          unregistered.put(name, OPEN_BRANCHES);
        } else {
          expiredBranches = true;
        }
        continue;
      }
      RegisteredStore store = known.get(name);
      List<String> twins = store == null ? Twins.of(name, known) : List.of();
      if (names != null && !names.contains(name) && Collections.disjoint(names, twins)) {
        continue;
      }
      if (!twins.isEmpty()) {
        unregistered.put(name, Twins.misspelt(name, twins.get(0)));
        continue;
      }
      if (store == null) {
        if (now.stores().contains(name)) {
          unregistered.put(name, EXPECTED);
        } else {
          elsewhere.add(name);
        }
        continue;
      }
      Mode mode = store.mode();
      if (mode == Mode.OFF) {
        switchedOff.add(name);
      } else {
        List<StoreRequest> group = !dryRun && mode == Mode.DRY_RUN ? recorded : asked;
        group.add(StoreRequest.of(RegionStore.of(store), lineage.ofStore(name), isOwn));
      }
    }
    return new Plan(
        scope,
        lineage,
        asked,
        elsewhere,
        unregistered,
        recorded,
        switchedOff,
        deadline(options.timeout(), scope, asked),
        reach,
        onTimeout(options.onTimeout() != null ? options.onTimeout() : now.onTimeout(), scope),
        onUnproven(options.onUnproven() != null ? options.onUnproven() : now.onUnproven(), scope),
        onVacuous(options.onVacuous() != null ? options.onVacuous() : now.onVacuous()),
        options.requireComplete(),
        dryRun,
        expiredBranches,
        names,
        inDoubt);
  }

  private static Reach checkedReach(Reach reach) {
    if (reach == Reach.SESSION) {
      throw new ConfigurationException(
          "AP111",
          "reach(SESSION) speaks of one connection, which a barrier does not have: use Antipode.reading(after) or "
              + "StoreOptions.waitOnRead(true)");
    }
    return reach == null ? Reach.REGION : reach;
  }

  private static long deadline(Duration timeout, LineageScope scope, List<StoreRequest> asked) {
    Duration wanted = timeout;
    if (wanted == null) {
      for (StoreRequest each : asked) {
        Duration own = each.store().timeout();
        wanted = wanted == null || own.compareTo(wanted) > 0 ? own : wanted;
      }
      if (wanted == null) {
        wanted = ProcessSettings.timeoutOf(null, null);
      }
    }
    if (wanted.compareTo(LONG) > 0) {
      String site = CallSite.current();
      Logs.warn(
          "AP110",
          "timeout " + site,
          "a barrier may wait for %d s: was that meant in milliseconds? site=%s".formatted(wanted.toSeconds(), site));
    }
    return tightened(nanos(wanted), scope);
  }

  /** Nanoseconds; a duration beyond their range is as long as they are. */
  static long nanos(Duration duration) {
    return duration.getSeconds() >= Integer.MAX_VALUE ? Integer.MAX_VALUE * 1_000_000_000L : duration.toNanos();
  }

  /** A deadline, tightened by the request's own (BAR-28). */
  static long tightened(long nanos, LineageScope scope) {
    if (scope == null || scope.deadline().isEmpty()) {
      return nanos;
    }
    return Math.min(nanos, Math.max(scope.deadline().getAsLong() - System.nanoTime(), 0));
  }

  private static Policy onTimeout(Policy policy, LineageScope scope) {
    if (policy == Policy.AS_TIMEOUT) {
      throw new ConfigurationException("AP111", "onTimeout(AS_TIMEOUT): want RAISE, PROCEED, REDELIVER");
    }
    checkRedeliver(policy, scope);
    return policy;
  }

  private static Policy onUnproven(Policy policy, LineageScope scope) {
    checkRedeliver(policy, scope);
    return policy;
  }

  private static Policy onVacuous(Policy policy) {
    if (policy != Policy.RAISE && policy != Policy.PROCEED) {
      throw new ConfigurationException("AP111", "onVacuous(" + policy.name() + "): want RAISE, PROCEED");
    }
    return policy;
  }

  private static void checkRedeliver(Policy policy, LineageScope scope) {
    if (policy != Policy.REDELIVER) {
      return;
    }
    if (scope == null || scope.delivery() == null) {
      throw new ConfigurationException(
          "AP113", "onTimeout(REDELIVER) needs a message to give back: this is not a consumer's scope");
    }
    if (!scope.delivery().canRedeliver()) {
      throw new ConfigurationException(
          "AP113", "onTimeout(REDELIVER): the message cannot go back: " + scope.delivery().detail());
    }
  }
}
