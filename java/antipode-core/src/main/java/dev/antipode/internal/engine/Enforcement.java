package dev.antipode.internal.engine;

import dev.antipode.BarrierException;
import dev.antipode.BarrierIncompleteException;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Policy;
import dev.antipode.RedeliverException;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.internal.base.ProcessSettings;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** What the policies make of a result (BAR-42 to BAR-47). */
final class Enforcement {
  /** A barrier that was over before this share of its deadline was given up early: timers end a little early, too. */
  private static final double WHOLE = 0.9;

  private Enforcement() {}

  /** Throws what the policies say of a result; returns where the application goes on. */
  static void enforce(Plan plan, BarrierResult result) {
    if (!result.satisfied()) {
      enforceSatisfied(plan, result);
    }
    if (result.vacuous() && plan.onVacuous() == Policy.RAISE) {
      throw new BarrierIncompleteException(
          "AP604",
          "a barrier judged nothing: " + String.join(", ", plan.elsewhere()) + " not registered in this process",
          result);
    }
    if (plan.requireComplete() && !result.complete()) {
      throw new BarrierIncompleteException(
          "AP116", "requireComplete: something was left unjudged\n" + result.explain(), result);
    }
  }

  private static void enforceSatisfied(Plan plan, BarrierResult result) {
    Set<String> recorded =
        plan.recorded().stream().map(asked -> asked.store().name()).collect(Collectors.toSet());
    List<String> late = new ArrayList<>();
    List<String> lost = new ArrayList<>();
    result.stores().forEach((name, store) -> {
      if (store.verdict() == Verdict.UNPROVEN) {
        lost.add(name);
      } else if (!recorded.contains(name)
          && (store.verdict() == Verdict.TIMED_OUT || store.verdict() == Verdict.NOT_YET)) {
        late.add(name);
      }
    });
    Collections.sort(lost); // the error has the first one's code (OBS-15)
    Collections.sort(late);
    if (!lost.isEmpty() && plan.onUnproven() != Policy.AS_TIMEOUT) {
      apply(plan.onUnproven(), unproven(result, lost));
      lost.clear();
    }
    if (!late.isEmpty()) {
      apply(plan.onTimeout(), timeout(plan, result, late, lost));
    } else if (!lost.isEmpty()) {
      apply(plan.onTimeout(), unproven(result, lost));
    }
  }

  private static void apply(Policy policy, BarrierException error) {
    if (policy == Policy.RAISE) {
      throw error;
    }
    if (policy == Policy.REDELIVER) {
      throw new RedeliverException("give the message back: " + error.words(), error.result(), error);
    }
  }

  /** The error for these stores that are late, and those unproven ones that count as such. */
  private static BarrierTimeoutException timeout(Plan plan, BarrierResult result, List<String> names, List<String> lost) {
    String region = ProcessSettings.inForce().region();
    String where = region.isEmpty() ? "" : " in region " + region;
    String late = names.stream()
        .map(name -> "%s is not visible%s after %d ms: %s"
            .formatted(name, where, Math.round(result.waited().toNanos() / 1e6), result.store(name).reason()))
        .collect(Collectors.joining("; "));
    boolean isDown = plan.asked().stream()
        .filter(asked -> names.contains(asked.store().name()))
        .flatMap(asked -> asked.servers().stream())
        .anyMatch(server -> !server.down().isEmpty());
    String cure;
    if (isDown) {
      cure = "See that its server runs and lets this process in: antipode doctor URL.";
    } else if (result.waited().toNanos() >= WHOLE * plan.timeout()) {
      cure = "Raise the timeout (it was %d ms), or read the primary with Antipode.readOrFallback()."
          .formatted(Math.round(plan.timeout() / 1e6));
    } else {
      cure = "It was given up early, so a longer timeout does not help: Antipode.readOrFallback() can read the primary.";
    }
    List<String> cures = new ArrayList<>(cures(result, lost));
    cures.add(cure);
    String told = lost.isEmpty() ? late : told(result, lost) + "; " + late;
    String code = result.store((lost.isEmpty() ? names : lost).get(0)).code();
    return new BarrierTimeoutException(code, told + ".\n  " + String.join("\n  ", cures), result);
  }

  /** The error that says why these stores are unproven, and what cures that; it has the first one's code (OBS-15). */
  static BarrierUnprovenException unproven(BarrierResult result, List<String> names) {
    String told = told(result, names) + ".\n  " + String.join("\n  ", cures(result, names));
    String code = result.store(names.get(0)).code();
    return new BarrierUnprovenException(code, told, result);
  }

  private static String told(BarrierResult result, List<String> names) {
    return names.stream().map(name -> name + ": " + result.store(name).reason()).collect(Collectors.joining("; "));
  }

  private static List<String> cures(BarrierResult result, List<String> names) {
    if (names.equals(List.of(Branches.STORE))) {
      return List.of("What that task was to write may be missing: run it again, or remove(antipode-branches).");
    }
    Map<UnprovenKind, String> firsts = new EnumMap<>(UnprovenKind.class);
    names.forEach(name -> firsts.putIfAbsent(result.store(name).kind(), name));
    return firsts.entrySet().stream().map(first -> first.getKey().cure(first.getValue())).toList();
  }
}
