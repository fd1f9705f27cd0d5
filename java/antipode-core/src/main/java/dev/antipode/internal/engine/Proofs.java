package dev.antipode.internal.engine;

import dev.antipode.internal.base.Ticks;
import java.util.HashMap;
import java.util.Map;

/**
 * What a server has proved: watermarks that belong to one instance and the epoch that it was in, as read in the reply
 * that proved them (BAR-33). One immutable value, so that a watermark is never seen with another reply's time.
 *
 * @param instance the server's process; empty while nothing is proved
 * @param epoch the history that it followed
 * @param applied epoch to the greatest position seen applied, unsigned
 * @param askedAt when the question was asked that the last reply answered, {@link Ticks}
 * @param generation the server's at that time
 */
record Proofs(String instance, String epoch, Map<String, Long> applied, long askedAt, int generation) {
  static final Proofs NONE = new Proofs("", "", Map.of(), Ticks.LONG_AGO, 0);

  /** Whether a position was seen applied. */
  boolean cover(String wantedEpoch, long counter) {
    Long reached = applied.get(wantedEpoch);
    return reached != null && Long.compareUnsigned(reached, counter) >= 0;
  }

  /** Whether this reply is of another instance or epoch, or the server went back. */
  boolean areReplacedBy(String newInstance, String newEpoch, Map<String, Long> positions) {
    if (!newInstance.equals(instance) || !newEpoch.equals(epoch)) {
      return true;
    }
    Long reached = applied.get(newEpoch);
    return reached != null && Long.compareUnsigned(positions.getOrDefault(newEpoch, 0L), reached) < 0;
  }

  /** These and what another reply of the same instance and epoch proved. */
  Proofs and(Map<String, Long> positions, long asked) {
    Map<String, Long> merged = applied;
    if (!positions.equals(applied)) {
      merged = new HashMap<>(applied);
      merged.putAll(positions);
    }
    return new Proofs(instance, epoch, merged, asked, generation);
  }

  /** The place in the current epoch, or null. */
  Long current() {
    return applied.get(epoch);
  }

  /** Nothing is proved any more; where the server was last is kept for what people read. */
  Proofs forgotten(int next) {
    return new Proofs("", epoch, Map.of(), Ticks.LONG_AGO, next);
  }
}
