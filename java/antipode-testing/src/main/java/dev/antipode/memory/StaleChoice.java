package dev.antipode.memory;

import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/** Says which version a read in monkey mode returns (spec MONKEY-7). Called with the store's lock held, one read at a time. */
@FunctionalInterface
public interface StaleChoice {
  /** How many versions behind the newest this read is: from 0, the newest, to {@link StaleRead#most}. */
  int behind(StaleRead read);

  /**
   * Chooses by numbers that a library for property-based tests has made: each is of one read, in their order, and the
   * reads after the last are the newest. A number that is too great is the stalest version. Where the library shrinks
   * the list, and its numbers towards 0, a failing test shrinks to the fewest stale reads.
   */
  static StaleChoice of(List<Integer> numbers) {
    Iterator<Integer> next = List.copyOf(numbers).iterator();
    return read -> next.hasNext() ? Math.min(next.next(), read.most()) : 0;
  }

  /** Chooses by a seed, for these regions: the same calls have the same answers, in every language (MONKEY-8). */
  static StaleChoice seeded(long seed, List<String> regions) {
    SplittableRandom root = new SplittableRandom(seed); // SplitMix64, by its definition
    Map<String, SplittableRandom> generators = new HashMap<>();
    regions.forEach(region -> generators.put(region, new SplittableRandom(root.nextLong())));
    return read -> (int) Long.remainderUnsigned(generators.get(read.region()).nextLong(), read.most() + 1L);
  }
}
