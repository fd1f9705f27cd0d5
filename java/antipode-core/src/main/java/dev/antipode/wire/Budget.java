package dev.antipode.wire;

import dev.antipode.wire.WireForm.Parts;
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
   * These parts in at most so many bytes: the longest section goes first, of equally long ones the later in canonical
   * order. If even the marks do not fit, one mark without a name stands for all, which is given whatever the budget.
   */
  public static Parts fitted(Parts parts, int budget) {
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
    List<String> sections = new ArrayList<>(kept.values());
    sections.sort(LONGEST_FIRST);
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
    }
    if (rest + size + flag <= budget) {
      return new Parts(kept, incomplete, parts.extensions());
    }
    boolean roomForExtensions = rest + WireForm.flagLength(WireForm.ANYWHERE) <= budget;
    return new Parts(Map.of(), WireForm.ANYWHERE, roomForExtensions ? parts.extensions() : List.of());
  }
}
