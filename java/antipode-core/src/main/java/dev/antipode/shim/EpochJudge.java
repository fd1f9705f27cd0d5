package dev.antipode.shim;

import dev.antipode.UnprovenKind;
import java.util.Map;

/** Judging one position at one server, for stores whose ended epochs marks decide (EPOCH-9 to EPOCH-14). */
public final class EpochJudge {
  private EpochJudge() {}

  /** {@link #judge(String, long, String, long, Map, Map)} where the server's own state proves no ends. */
  public static Visibility judge(String epoch, long counter, String current, long applied, Map<String, Long> marks) {
    return judge(epoch, counter, current, applied, marks, Map.of());
  }

  /**
   * Whether {@code epoch.counter} is visible at a server that follows {@code current} and has applied it up to {@code
   * applied}. All counters are unsigned.
   *
   * @param marks what the marks that it has applied say: epoch to the greatest position wholly there
   * @param known ends of epochs that the server's own state proves beside them
   */
  public static Visibility judge(
      String epoch,
      long counter,
      String current,
      long applied,
      Map<String, Long> marks,
      Map<String, Long> known) {
    boolean isCurrent = epoch.equals(current);
    Long end = greater(marks.get(epoch), known.get(epoch));
    if (isCurrent) {
      end = greater(end, applied);
    }
    if (end != null && Long.compareUnsigned(counter, end) <= 0) {
      return Visibility.VISIBLE;
    }
    if (isCurrent) {
      return Visibility.notYet("at " + place(epoch, applied) + ", wanted " + Long.toUnsignedString(counter));
    }
    if (end == null) {
      return Visibility.unknownEpoch(
          "epoch " + shortened(epoch) + " is not known there (it is at " + place(current, applied) + ")");
    }
    String told = Long.toUnsignedString(end);
    if (marks.containsKey(current)) {
      return Visibility.unproven(
          "epoch %s has ended there at %s, wanted %s: it may be lost"
              .formatted(shortened(epoch), told, Long.toUnsignedString(counter)),
          UnprovenKind.HISTORY);
    }
    return Visibility.notYet(
        "epoch %s is proved up to %s only, wanted %s"
            .formatted(shortened(epoch), told, Long.toUnsignedString(counter)));
  }

  /** A place in a store's history, for a person: {@code 8371….1042}. */
  public static String place(String epoch, long counter) {
    return shortened(epoch) + "." + Long.toUnsignedString(counter);
  }

  private static String shortened(String epoch) {
    return epoch.substring(0, Math.min(4, epoch.length())) + "…";
  }

  private static Long greater(Long one, Long other) {
    if (one == null || other == null) {
      return one == null ? other : one;
    }
    return Long.compareUnsigned(one, other) >= 0 ? one : other;
  }
}
