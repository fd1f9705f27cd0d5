package dev.antipode.internal.model;

import dev.antipode.MalformedLineageException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * The wire form: one text for baggage, headers, messages and the value beside the data (chapter WIRE of the
 * specification). It knows spelled strings only: it validates a whole text and splits it into sections that stay
 * unopened.
 */
public final class WireForm {
  /** Longest lineage text, in bytes: a baggage pair of 4,096 less {@code antipode=} (WIRE-11). */
  public static final int MAX_BYTES = 4087;

  /** Most entries of a text (WIRE-12). */
  public static final int MAX_ENTRIES = 512;

  /** Longest name of a store, in octets (WIRE-4). */
  public static final int MAX_STORE = 63;

  /** Longest epoch, in octets (WIRE-7). */
  public static final int MAX_EPOCH = 32;

  /** The empty, complete lineage. */
  public static final String EMPTY_TEXT = "1";

  /** The flag that something is missing, nobody knows in which store. */
  public static final Set<String> ANYWHERE = Set.of("");

  private static final String INCOMPLETE_TAG = "i";
  private static final String SEAL_TAG = "h";

  private WireForm() {}

  /**
   * A lineage text split at {@code ~}; the sections are still closed.
   *
   * @param sections section texts by the spelled name of their store
   * @param incomplete spelled names of the stores in which something is missing; the empty name means anywhere
   * @param extensions unknown extensions as they were spelled, each once and in order
   */
  public record Parts(Map<String, String> sections, Set<String> incomplete, List<String> extensions) {
    /** No section, no flag, no extension. */
    public static final Parts EMPTY = new Parts(Map.of(), Set.of(), List.of());
  }

  /**
   * Validates a lineage text lexically and splits it into closed sections (WIRE-1 to WIRE-16).
   *
   * @throws MalformedLineageException where the grammar or a bound is broken, or a store stands twice
   */
  public static Parts split(String text) {
    if (text.length() > MAX_BYTES) {
      throw new MalformedLineageException(
          "a lineage of " + text.length() + " bytes; at most " + MAX_BYTES + " are taken");
    }
    if (text.equals(EMPTY_TEXT)) {
      return Parts.EMPTY;
    }
    if (!text.startsWith("1~")) {
      throw notALineage(text);
    }
    Map<String, String> sections = new HashMap<>();
    List<String> extensions = new ArrayList<>();
    int entries = 0;
    for (int from = 2; from <= text.length(); ) {
      int to = text.indexOf('~', from);
      String part = text.substring(from, to < 0 ? text.length() : to);
      from = to < 0 ? text.length() + 1 : to + 1;
      if (part.startsWith("_.")) {
        checkExtension(part, text);
        extensions.add(part);
        continue;
      }
      if (!extensions.isEmpty()) {
        throw notALineage(text); // sections stand before extensions
      }
      entries += checkSection(part, text);
      if (sections.put(part.substring(0, part.indexOf('.')), part) != null) {
        throw new MalformedLineageException("a store stands twice in a lineage");
      }
    }
    if (entries > MAX_ENTRIES) {
      throw new MalformedLineageException(
          "a lineage of " + entries + " entries; at most " + MAX_ENTRIES + " are taken");
    }
    return extensions.isEmpty() ? new Parts(sections, Set.of(), List.of()) : withExtensions(sections, extensions);
  }

  /** Checks one section, and counts its entries. */
  private static int checkSection(String part, String text) {
    int dot = Scan.run(part, 0);
    if (dot == 0 || dot >= part.length() || part.charAt(dot) != '.'
        || Names.octetsOf(part.substring(0, dot)) > MAX_STORE) {
      throw notALineage(text);
    }
    int entries = 0;
    for (int place = dot; place < part.length(); entries++) {
      place = checkEntry(part, place + 1, text);
    }
    return entries;
  }

  /** Checks the entry that begins here, and gives the place of the dot, or of the end, after it. */
  private static int checkEntry(String part, int from, String text) {
    int keyEnd = Scan.run(part, from);
    if (!isDot(part, keyEnd)) {
      throw notALineage(text);
    }
    int epochFrom = keyEnd + 1;
    int lastFrom;
    int end;
    if (part.startsWith("_.", epochFrom)) {
      lastFrom = epochFrom + 2;
      end = Scan.run(part, lastFrom);
      if (keyEnd == from || end == lastFrom) {
        throw notALineage(text); // an opaque version has a key and a mark
      }
    } else {
      int epochEnd = Scan.run(part, epochFrom);
      lastFrom = epochEnd + 1;
      if (!isDot(part, epochEnd) || keyEnd == from && epochEnd == epochFrom
          || Names.octetsOf(part.substring(epochFrom, epochEnd)) > MAX_EPOCH) {
        throw notALineage(text);
      }
      end = Scan.run(part, lastFrom);
      if (!Scan.isCounter(part, lastFrom, end)) {
        throw notALineage(text);
      }
    }
    if (end < part.length() && part.charAt(end) != '.') {
      throw notALineage(text);
    }
    if (keyEnd - from > Names.MAX_KEY) {
      throw new MalformedLineageException("a key of more than " + Names.MAX_KEY + " characters");
    }
    return end;
  }

  private static boolean isDot(String part, int place) {
    return place < part.length() && part.charAt(place) == '.';
  }

  private static void checkExtension(String part, String text) {
    int place = 2;
    while (place < part.length() && isTag(part.charAt(place))) {
      place++;
    }
    if (place == 2) {
      throw notALineage(text);
    }
    while (place < part.length()) {
      if (part.charAt(place) != '.') {
        throw notALineage(text);
      }
      place = Scan.run(part, place + 1);
    }
  }

  private static boolean isTag(char c) {
    return c >= 'a' && c <= 'z' || c >= '0' && c <= '9';
  }

  private static Parts withExtensions(Map<String, String> sections, List<String> extensions) {
    Set<String> incomplete = Set.of();
    Set<String> kept = new TreeSet<>();
    for (int place = 0; place < extensions.size(); place++) {
      String part = extensions.get(place);
      String[] fields = part.split("\\.", -1);
      if (fields[1].equals(INCOMPLETE_TAG)) {
        Set<String> stores = new HashSet<>(Arrays.asList(fields).subList(2, fields.length));
        for (String store : stores) {
          if (store.isEmpty() || Names.octetsOf(store) > MAX_STORE) {
            throw new MalformedLineageException("not a store name in '" + shown(part) + "'");
          }
        }
        incomplete = joinIncomplete(incomplete, stores.isEmpty() ? ANYWHERE : stores);
      } else if (!fields[1].equals(SEAL_TAG)) {
        kept.add(part);
      } else if (place != extensions.size() - 1) {
        // A seal speaks of the text that it came with, and is made anew on the way out (TRUST-23).
        throw new MalformedLineageException("something follows the seal of a lineage");
      }
    }
    return new Parts(sections, incomplete, List.copyOf(kept));
  }

  /** Union of two flags; anywhere absorbs the named stores (LIN-15, LIN-16). */
  public static Set<String> joinIncomplete(Set<String> a, Set<String> b) {
    if (a.isEmpty() || b.isEmpty()) {
      return a.isEmpty() ? b : a;
    }
    if (a.contains("") || b.contains("")) {
      return ANYWHERE;
    }
    Set<String> joined = new HashSet<>(a);
    joined.addAll(b);
    return Collections.unmodifiableSet(joined);
  }

  /** The text of sections in canonical order, then the extensions (WIRE-19 to WIRE-22). */
  public static String join(Parts parts) {
    if (parts.sections().size() == 1 && parts.incomplete().isEmpty() && parts.extensions().isEmpty()) {
      return "1~" + parts.sections().values().iterator().next();
    }
    StringBuilder text = new StringBuilder(EMPTY_TEXT);
    append(text, parts.sections().values());
    if (!parts.incomplete().isEmpty()) {
      List<String> extensions = new ArrayList<>(parts.extensions());
      extensions.add(flag(parts.incomplete()));
      append(text, extensions);
    } else {
      append(text, parts.extensions());
    }
    return text.toString();
  }

  private static void append(StringBuilder text, Collection<String> parts) {
    String[] sorted = parts.toArray(String[]::new);
    Arrays.sort(sorted);
    for (String part : sorted) {
      text.append('~').append(part);
    }
  }

  private static String flag(Set<String> incomplete) {
    if (incomplete.contains("")) {
      return "_.i";
    }
    String[] stores = incomplete.toArray(String[]::new);
    Arrays.sort(stores);
    return "_.i." + String.join(".", stores);
  }

  /** How much longer a text is by this flag. */
  static int flagLength(Set<String> incomplete) {
    return incomplete.isEmpty() ? 0 : flag(incomplete).length() + 1;
  }

  /** A text without the white space round it that a carrier may have put there: spaces, tabs and ends of lines (WIRE-28). */
  public static String stripped(String text) {
    int from = 0;
    int to = text.length();
    while (from < to && isWhiteSpace(text.charAt(from))) {
      from++;
    }
    while (from < to && isWhiteSpace(text.charAt(to - 1))) {
      to--;
    }
    return text.substring(from, to);
  }

  private static boolean isWhiteSpace(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  }

  /** How many entries a section's text has. */
  static int entriesOf(String section) {
    int dots = 0;
    for (int place = 0; place < section.length(); place++) {
      if (section.charAt(place) == '.') {
        dots++;
      }
    }
    return dots / 3;
  }

  private static MalformedLineageException notALineage(String text) {
    return new MalformedLineageException("not a lineage: '" + shown(text) + "'");
  }

  /** Text from outside as it may stand in a message. */
  private static String shown(String text) {
    StringBuilder shown = new StringBuilder();
    text.chars().limit(80).forEach(c -> {
      if (c >= ' ' && c < 127) {
        shown.append((char) c);
      } else {
        shown.append(String.format("\\u%04x", c));
      }
    });
    return shown.toString();
  }
}
