package dev.antipode.redis;

import dev.antipode.Ordered;
import dev.antipode.WriteId;
import dev.antipode.shim.EpochJudge;
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
record ServerState(Replication replication, Map<String, Long> marks, String whyNoMarks) {

  static ServerState of(Replication replication, Map<String, Long> marks) {
    return new ServerState(replication, marks, null);
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
    String here = replication.epoch();
    Map<String, Long> known = new HashMap<>();
    raise(known, replication.before(), replication.beforeEnd() - 1);
    Visibility answer = EpochJudge.judge(
        epoch, wanted.counter(), here, Math.max(replication.offset(), 0), marks, known);
    if (answer.isVisible()) {
      return answer;
    }
    if (epoch.equals(here)) {
      return replication.link() ? answer : Visibility.notYet(answer.reason() + "; its link to the primary is down");
    }
    return whyNoMarks == null
        ? answer
        : Visibility.unknownEpoch("in epoch %s…, and %s".formatted(cut(here), whyNoMarks));
  }

  private static String cut(String epoch) {
    return epoch.substring(0, Math.min(4, epoch.length()));
  }
}
