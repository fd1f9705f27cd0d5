package dev.antipode.internal.engine;

import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.WriteId;
import java.time.Clock;
import java.util.List;

/**
 * What a language without branches owes them: it carries them, and passes none (BRANCH-16 to BRANCH-19).
 *
 * <p>An open branch stands for writes that a task has still to make, to whichever store.
 */
final class Branches {
  /** The store whose entries are open branches. */
  static final String STORE = "antipode-branches";

  /** Why a lineage with open branches is unproven here. */
  static final String REASON = "open branches, which this language does not look up: their tasks may have writes to make";

  /** Why one is incomplete that was open long ago. */
  static final String EXPIRED = "branches that were open more than 24 hours ago: nobody knows what became of them";

  private static final long ROW_LIFE_MS = 24 * 3_600_000L;

  private Branches() {}

  /** Whether a lineage has a branch that may be open still. */
  static boolean anyOpen(Lineage lineage, Clock clock) {
    List<WriteId> entries = lineage.ofStore(STORE);
    return entries.stream().anyMatch(entry -> !isExpired(entry, clock));
  }

  private static boolean isExpired(WriteId entry, Clock clock) {
    return entry.version() instanceof Ordered version
        && !entry.isPosition()
        && version.epoch().isEmpty()
        && Long.compareUnsigned(version.counter(), clock.millis() - ROW_LIFE_MS) < 0;
  }
}
