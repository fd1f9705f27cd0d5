package dev.antipode.postgresql;

import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;

/**
 * The timelines that a timeline came from, and where each of them ended for it.
 *
 * @param timeline the timeline
 * @param ends where each that it came from ended, unsigned
 */
record History(long timeline, Map<Long, Long> ends) {
  /** Greater than every place (unsigned). */
  static final long FOR_EVER = -1L;

  /** A timeline that came from none, or of which nothing before is known. */
  static History of(long timeline) {
    return new History(timeline, Map.of());
  }

  /**
   * Return what a history file says: lines {@code timeline  switch-position  why}, the oldest first. A standby that was promoted
   * before it came to the fork which its history names has a later end that is smaller: nothing of an older timeline beyond that
   * is there (EPOCH-28).
   */
  static History parse(long timeline, String text) {
    Map<Long, Long> ends = new HashMap<>();
    for (String line : text.split("\n")) {
      String[] words = line.trim().split("\\s+");
      if (words.length >= 2 && words[0].matches("[0-9]{1,10}") && words[1].matches("[0-9A-Fa-f]+/[0-9A-Fa-f]+")) {
        long end = Lsn.parse(words[1]);
        ends.replaceAll((older, before) -> Long.compareUnsigned(before, end) < 0 ? before : end);
        ends.put(Long.parseLong(words[0]), end);
      }
    }
    return new History(timeline, Map.copyOf(ends));
  }

  /** Up to where a timeline belongs to this history; empty where it is no part of it. */
  OptionalLong endOf(long other) {
    if (other == timeline) {
      return OptionalLong.of(FOR_EVER);
    }
    Long end = ends.get(other);
    return end == null ? OptionalLong.empty() : OptionalLong.of(end);
  }
}
