package dev.antipode.postgresql;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A timeline of a system, and the word that tells it from another one of the same number (EPOCH-29).
 *
 * <p>Two standbys that were promoted apart both call their new timeline by the same number; each has a word of its own,
 * in the row that the first wrapped writer of the timeline made.
 *
 * @param system the system identifier, unsigned
 * @param timeline the timeline's number
 * @param word empty where the store has no table of epochs
 */
record Epoch(long system, long timeline, String word) {
  private static final Pattern NAME = Pattern.compile("([0-9a-z]{1,13})-([0-9]{1,10})(?:-([0-9a-z]{1,7}))?");

  /** The epoch of this name; null where it is none of PostgreSQL's. */
  static Epoch of(String name) {
    Matcher match = NAME.matcher(name);
    if (!match.matches()) {
      return null;
    }
    try {
      long system = Long.parseUnsignedLong(match.group(1), 36);
      return new Epoch(system, Long.parseLong(match.group(2)), match.group(3) == null ? "" : match.group(3));
    } catch (NumberFormatException error) { // more than 64 bits
      return null;
    }
  }

  /** Its name in versions. */
  @Override
  public String toString() {
    String name = Long.toUnsignedString(system, 36) + "-" + timeline;
    return word.isEmpty() ? name : name + "-" + word;
  }
}
