package dev.antipode.barrier;

import dev.antipode.BarrierException;
import dev.antipode.BarrierIncompleteException;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Policy;
import dev.antipode.RedeliverException;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.configuration.ProcessSettings;
import java.util.ArrayList;
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
    if (!lost.isEmpty() && plan.onUnproven() != Policy.AS_TIMEOUT) {
      apply(plan.onUnproven(), unproven(result, lost));
    }
    if (!late.isEmpty()) {
      String code = result.store(late.get(0)).code();
      apply(plan.onTimeout(), new BarrierTimeoutException(code, timeoutWords(plan, result, late), result));
    } else if (!lost.isEmpty() && plan.onUnproven() == Policy.AS_TIMEOUT) {
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

  private static String timeoutWords(Plan plan, BarrierResult result, List<String> names) {
    String region = ProcessSettings.inForce().region();
    String where = region.isEmpty() ? "" : " in region " + region;
    String told = names.stream()
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
    return told + ".\n  " + cure;
  }

  /** The error has the code of the first of these stores (OBS-15). */
  static BarrierUnprovenException unproven(BarrierResult result, List<String> names) {
    String code = result.store(names.get(0)).code();
    return new BarrierUnprovenException(code, unprovenWords(result, names), result);
  }

  private static String unprovenWords(BarrierResult result, List<String> names) {
    String told = names.stream()
        .map(name -> name + ": " + result.store(name).reason())
        .collect(Collectors.joining("; "));
    if (names.equals(List.of(Branches.STORE))) {
      return told + ".\n  What that task was to write may be missing: run it again, or remove(antipode-branches).";
    }
    Map<UnprovenKind, String> firsts = new EnumMap<>(UnprovenKind.class);
    names.forEach(name -> firsts.putIfAbsent(result.store(name).kind(), name));
    return told + "." + firsts.entrySet().stream()
        .map(first -> "\n  " + first.getKey().cure(first.getValue())).collect(Collectors.joining());
  }
}
