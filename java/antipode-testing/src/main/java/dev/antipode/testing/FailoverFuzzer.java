package dev.antipode.testing;

import dev.antipode.Antipode;
import dev.antipode.Settings;
import java.time.Duration;
import java.util.function.LongFunction;

/**
 * The failover fuzzer: random failovers on a store's real servers, every write judged (EPOCH-27).
 *
 * <p>Each run takes a primary and two replicas or more, writes through the wrapped client, slows and cuts links, kills and
 * restarts servers, and promotes again and again: with and without lost writes, and twice with no write between. Writes
 * are judged at every server in the middle of the run, across promotions by parked barriers, and all of them at the end.
 */
public final class FailoverFuzzer {
  private FailoverFuzzer() {}

  /** Plays so many runs, each on servers of its own: {@code make} gives them for a seed. */
  public static FailoverTally run(LongFunction<? extends FailoverDriver> make, int runs, long seed) {
    FailoverTally tally = new FailoverTally();
    for (int number = 0; number < runs; number++) {
      play(make, seed + number, tally);
    }
    return tally;
  }

  private static void play(LongFunction<? extends FailoverDriver> make, long seed, FailoverTally tally) {
    try (Isolated isolated = new Isolated(); FailoverDriver driver = make.apply(seed)) {
      // No exposure: whatever passes was asked for now. And no server is left out of a pass while it is restarted: that
      // is an answer about the server (BAR-26), which would hide the one about the write.
      Antipode.configure(
          Settings.defaults().freePathTtl(Duration.ZERO).replicaOutAfter(Duration.ofSeconds(30)));
      driver.begin();
      new FailoverRun(driver, seed, tally).play();
    }
  }
}
