package dev.antipode.internal.engine;

import dev.antipode.internal.base.Ticks;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * When a server's thread asks (BAR-38, BAR-66): at once for whoever is new, else no more than once a shortest interval; where
 * its position grows, when the nearest one that somebody waits for should be there. Where nothing is predicted (it stands
 * still, is of other data than before, or is not all that is asked for) it asks for each push, and else with a poll's back-off.
 */
final class Pace {
  static final long RETRY_FIRST = TimeUnit.MILLISECONDS.toNanos(50);

  /** The poll interval doubles up to so many times the shortest. */
  private static final int SAFETY_NET = 10;

  /** By so much it grows where nobody waits: when a write was seen is known to within a quarter, or the longest interval. */
  private static final double UNHURRIED = 1.25;

  private final Growth growth;
  private long askedAt = Ticks.LONG_AGO;
  private long pacedAt = Ticks.LONG_AGO; // when it was last asked for nobody who is new
  private long interval;
  private long retry = RETRY_FIRST;
  private boolean wasDown;
  private boolean hasNews;
  private boolean isUnhurried; // nobody waited for the last answer, and it may have been long since then

  /** Whether the store's own wait lately waited, or saw something: one that comes back at once is a poll. */
  boolean blocks = true;

  Pace(Growth growth) {
    this.growth = growth;
  }

  /** When the last question began. */
  long askedAt() {
    return askedAt;
  }

  /** The pause behind a failure. */
  long retry() {
    return retry;
  }

  /** The server has pushed, and is to be asked for it when that is due. */
  void noteNews() {
    hasNews = true;
  }

  /** Somebody new is asked for: where nobody waits, now or for the last answer, the interval begins anew. */
  void hurry(boolean unhurried) {
    if (unhurried || isUnhurried) {
      interval = 0;
    }
  }

  /** Return when to ask for those who wait; {@code nearest}: the position that comes first, null where it is not all. */
  long due(long shortest, Proofs known, Long nearest) {
    long soonest = pacedAt + shortest;
    long pushed = pacedAt + Math.min(shortest, Growth.CAP); // who has a push may poll seldom
    Long expected = growth.expectedAt(known, nearest);
    if (expected == null) {
      long slow = (long) (Math.max(interval, shortest) * ThreadLocalRandom.current().nextDouble(0.9, 1.1));
      return hasNews ? pushed : Math.max(askedAt + slow, soonest);
    }
    return hasNews && growth.isPushedTo(nearest) ? pushed : Math.max(expected, soonest);
  }

  /** A question begins; {@code isPaced}: it is due, and not for somebody new alone. */
  void begin(long now, boolean isPaced) {
    askedAt = now;
    hasNews = false;
    pacedAt = isPaced ? now : pacedAt;
  }

  /** What came of it: silence, something new, or nothing. */
  void end(long shortest, boolean isDown, boolean isSteady, boolean unhurried) {
    retry = isDown && wasDown ? Math.min(retry * 2, Reachability.RETRY_MOST) : RETRY_FIRST;
    wasDown = isDown;
    long longer = (long) (Math.max(interval, shortest) * (unhurried ? UNHURRIED : 2));
    interval = isDown || isSteady ? shortest : Math.min(longer, shortest * SAFETY_NET);
    isUnhurried = unhurried;
  }
}
