package dev.antipode.postgresql;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * One look at a server. {@code reached} was read first, everything else after it.
 *
 * @param system its system identifier
 * @param recovering whether it is a standby
 * @param reached replayed up to here (a standby), flushed up to here (a primary)
 * @param histories what it may be following: one where it is known, several while its receiver is down, none where it is
 *     hidden
 * @param words the word of each branch whose row it shows
 * @param settled epochs that an operator has vouched for, by name
 * @param wordsFresh whether the words were read after {@code reached}
 * @param whyHidden why the history cannot be known
 * @param uniqueTimelines the operator's word that no two servers ever call different timelines by one number
 */
record ServerState(
    long system,
    boolean recovering,
    long reached,
    List<History> histories,
    Map<Branch, String> words,
    Map<String, Long> settled,
    boolean wordsFresh,
    String whyHidden,
    boolean uniqueTimelines) {

  /** A system's timeline of a number. */
  record Branch(long system, long timeline) {}

  /** The word that it shows for its own timeline of a number; empty where it shows none. */
  String wordOf(long timeline) {
    return words.getOrDefault(new Branch(system, timeline), "");
  }

  /** The epoch that the server is in, as far as is known. */
  String epoch() {
    long timeline = histories.stream().mapToLong(History::timeline).max().orElse(0);
    return new Epoch(system, timeline, histories.isEmpty() ? "" : wordOf(timeline)).toString();
  }

  /** An epoch to up to where everything of it is here: what holds in every history that it may be following. */
  Map<String, Long> proved() {
    Map<String, Long> found = new HashMap<>(settled);
    if (histories.isEmpty()) {
      return found;
    }
    words.forEach((branch, word) -> {
      if (branch.system() != system) {
        return;
      }
      long least = reached;
      for (History history : histories) {
        OptionalLong end = history.endOf(branch.timeline());
        if (end.isEmpty()) {
          return;
        }
        least = lesser(least, end.getAsLong());
      }
      String name = new Epoch(system, branch.timeline(), word).toString();
      found.merge(name, least, ServerState::greater);
    });
    return found;
  }

  private static long lesser(long a, long b) {
    return Long.compareUnsigned(a, b) <= 0 ? a : b;
  }

  private static long greater(long a, long b) {
    return Long.compareUnsigned(a, b) >= 0 ? a : b;
  }
}
