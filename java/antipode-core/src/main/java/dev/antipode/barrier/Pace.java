package dev.antipode.barrier;

import java.util.concurrent.TimeUnit;

/** When a server's thread asks: the time of its last question, its poll interval, its pause after a failure. */
final class Pace {
  long askedAt = Ticks.LONG_AGO;
  long interval;
  long retry = TimeUnit.MILLISECONDS.toNanos(50);

  /** Whether the store's own wait lately waited, or saw something: one that comes back at once is a poll. */
  boolean blocks = true;
}
