package dev.antipode.redis;

import dev.antipode.Ordered;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Visibility;
import java.util.HashMap;
import java.util.Map;

/**
 * One atomic look at a server: its place in replication, and the marks in its data (spec EPOCH).
 *
 * @param replication its place
 * @param marks epoch to the greatest position (unsigned) before the mark, for the epochs that were asked for
 * @param whyNoMarks why the marks could not be read; null where they could
 */
record Seen(Replication replication, Map<String, Long> marks, String whyNoMarks) {

  static Seen of(Replication replication, Map<String, Long> marks) {
    return new Seen(replication, marks, null);
  }

  /** Whether a mark written in the server's own current epoch was applied: older epochs have ended here (EPOCH-11). */
  private boolean isPast() {
    return marks.containsKey(replication.epoch());
  }

  /** Per epoch, up to where everything is here (unsigned). */
  Map<String, Long> proved() {
    Map<String, Long> proved = new HashMap<>(marks);
    raise(proved, replication.epoch(), replication.offset());
    raise(proved, replication.before(), replication.beforeEnd() - 1);
    return proved;
  }

  private static void raise(Map<String, Long> proved, String epoch, long counter) {
    if (!epoch.isEmpty() && counter >= 0) {
      proved.merge(epoch, counter, (old, now) -> Long.compareUnsigned(old, now) < 0 ? now : old);
    }
  }

  /** What one look proves of one write; never by the offset of another history (EPOCH-9 to EPOCH-14). */
  Visibility judge(WriteId id) {
    if (!id.isPosition() || !(id.version() instanceof Ordered wanted)) {
      return Visibility.unproven(id + " is no Redis position");
    }
    String epoch = wanted.epoch();
    Map<String, Long> proved = proved();
    Long reached = proved.get(epoch);
    if (reached != null && wanted.compareCounter(reached) <= 0) {
      return Visibility.VISIBLE;
    }
    String here = replication.epoch();
    if (epoch.equals(here)) {
      String link = replication.link() ? "" : ", its link to the primary is down";
      return Visibility.notYet(
          "at %s….%d, wanted %s%s".formatted(cut(epoch), replication.offset(), wanted.counterText(), link));
    }
    if (whyNoMarks != null) {
      return Visibility.unknownEpoch("in epoch %s…, and %s".formatted(cut(here), whyNoMarks));
    }
    Long mark = marks.get(epoch);
    if (mark != null && isPast()) {
      return Visibility.unproven(
          "epoch %s… has ended here, and no mark covers %s: %s is the last that is known to be here"
              .formatted(cut(epoch), wanted.counterText(), Long.toUnsignedString(mark)),
          UnprovenKind.HISTORY);
    }
    if (reached != null) {
      return Visibility.notYet(
          "in epoch %s…, has %s… up to %s, and no mark of its own epoch yet"
              .formatted(cut(here), cut(epoch), Long.toUnsignedString(reached)));
    }
    return Visibility.unknownEpoch("in epoch %s…, and does not know %s…".formatted(cut(here), cut(epoch)));
  }

  private static String cut(String epoch) {
    return epoch.substring(0, Math.min(4, epoch.length()));
  }
}
