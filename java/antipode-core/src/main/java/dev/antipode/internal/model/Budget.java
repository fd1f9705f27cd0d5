package dev.antipode.internal.model;

import dev.antipode.internal.model.WireForm.Parts;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The size budget: whole sections are left out, and their stores marked, until a text fits (WIRE-32 to WIRE-37). */
public final class Budget {
  private static final Comparator<String> LONGEST_FIRST =
      Comparator.comparingInt(String::length).thenComparing(Comparator.naturalOrder()).reversed();

  private static final int SHARE_OF_NAMES = 8;

  private Budget() {}

  /** Whether a text of these parts has at most so many bytes, and not too many entries. */
  public static boolean fits(Parts parts, int length, int budget) {
    return length <= budget && entriesOf(parts) <= WireForm.MAX_ENTRIES;
  }

  /** How long a text of these parts would be if nothing were left out of it. */
  public static int lengthOf(Parts parts) {
    int length = 1 + WireForm.flagLength(parts.incomplete());
    for (String section : parts.sections().values()) {
      length += section.length() + 1;
    }
    for (String extension : parts.extensions()) {
      length += extension.length() + 1;
    }
    return length;
  }

  private static int entriesOf(Parts parts) {
    int entries = 0;
    for (String section : parts.sections().values()) {
      entries += WireForm.entriesOf(section);
    }
    return entries;
  }

  /**
   * These parts in at most so many bytes. First goes what passed through, the longest section first, of equally long ones the
   * later in canonical order; then what changed. Where the marks' names take more than an eighth, or do not fit, one mark without
   * a name stands for all, which is given whatever the budget.
   *
   * @param changed the spelled stores that changed, the oldest change first; a section that would not fit alone is none of them
   */
  public static Parts fitted(Parts parts, int budget, List<String> changed) {
    Map<String, String> kept = new HashMap<>(parts.sections());
    Set<String> incomplete = new HashSet<>(parts.incomplete());
    int rest = 1;
    for (String extension : parts.extensions()) {
      rest += extension.length() + 1;
    }
    int flag = WireForm.flagLength(incomplete);
    int size = 0;
    for (String section : kept.values()) {
      size += section.length() + 1;
    }
    int entries = entriesOf(parts);
    int alone = budget - rest - WireForm.flagLength(WireForm.ANYWHERE);
    List<String> last = changed.stream()
        .map(kept::get)
        .filter(section -> section != null && section.length() < alone && WireForm.entriesOf(section) <= WireForm.MAX_ENTRIES)
        .toList();
    List<String> sections = new ArrayList<>(kept.values());
    sections.removeAll(new HashSet<>(last));
    sections.sort(LONGEST_FIRST);
    sections.addAll(last);
    for (String section : sections) { // lengths are summed, so that it takes no longer than a sort
      if (rest + size + flag <= budget && entries <= WireForm.MAX_ENTRIES) {
        break;
      }
      String store = section.substring(0, section.indexOf('.'));
      kept.remove(store);
      size -= section.length() + 1;
      entries -= WireForm.entriesOf(section);
      if (!incomplete.contains("") && incomplete.add(store)) {
        flag = (flag == 0 ? WireForm.flagLength(WireForm.ANYWHERE) : flag) + store.length() + 1;
      }
      if (flag > budget / SHARE_OF_NAMES) {
        incomplete = new HashSet<>(WireForm.ANYWHERE);
        flag = WireForm.flagLength(incomplete);
      }
    }
    if (rest + size + flag <= budget) {
      return new Parts(kept, incomplete, parts.extensions());
    }
    boolean roomForExtensions = rest + WireForm.flagLength(WireForm.ANYWHERE) <= budget;
    return new Parts(Map.of(), WireForm.ANYWHERE, roomForExtensions ? parts.extensions() : List.of());
  }
}
