package dev.antipode.internal.model;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** One store's section of a lineage, opened: its entries as spelled strings, kept minimal (LIN-7 to LIN-9). */
public final class Section {
  /** What stands in the place of the epoch where a version is opaque. */
  public static final String OPAQUE = "_";

  private final String store;
  private final Map<String, Long> positions = new HashMap<>();
  private final Map<ObjectInEpoch, Long> objects = new HashMap<>();
  private final Set<Entry> opaques = new HashSet<>();

  private record ObjectInEpoch(String key, String epoch) {}

  /**
   * An entry by its spelled fields.
   *
   * @param key empty for a position
   * @param epoch {@link #OPAQUE} where the version is opaque
   * @param last the counter in decimal, or the mark
   */
  public record Entry(String key, String epoch, String last) implements Comparable<Entry> {
    /** Whether its version has no order. */
    public boolean isOpaque() {
      return epoch.equals(OPAQUE);
    }

    /** The entry as it stands in a section's text, without the leading dot. */
    public String text() {
      return key + "." + epoch + "." + last;
    }

    @Override
    public int compareTo(Entry other) {
      return text().compareTo(other.text()); // WIRE-20
    }
  }

  private Section(String store) {
    this.store = store;
  }

  /** Opens and normalises the text of a section that has been validated. */
  public static Section open(String text) {
    int dot = text.indexOf('.');
    Section section = new Section(text.substring(0, dot));
    section.add(text, dot);
    section.absorb();
    return section;
  }

  /** A section of these entries of one store, each as {@code store.key.epoch.counter} or {@code store.key._.mark}. */
  public static String of(List<String> singles) {
    if (singles.size() == 1) {
      return singles.get(0);
    }
    int dot = singles.get(0).indexOf('.');
    Section section = new Section(singles.get(0).substring(0, dot));
    for (String single : singles) {
      section.add(single, dot);
    }
    section.absorb();
    return section.text();
  }

  private void add(String text, int dot) {
    for (int place = dot; place < text.length(); ) {
      int keyEnd = text.indexOf('.', place + 1);
      int epochEnd = text.indexOf('.', keyEnd + 1);
      int end = text.indexOf('.', epochEnd + 1);
      end = end < 0 ? text.length() : end;
      String key = text.substring(place + 1, keyEnd);
      String epoch = text.substring(keyEnd + 1, epochEnd);
      String last = text.substring(epochEnd + 1, end);
      if (epoch.equals(OPAQUE)) {
        opaques.add(new Entry(key, OPAQUE, last));
      } else if (key.isEmpty()) {
        positions.merge(epoch, Long.parseUnsignedLong(last), Section::greater);
      } else {
        objects.merge(new ObjectInEpoch(key, epoch), Long.parseUnsignedLong(last), Section::greater);
      }
      place = end;
    }
  }

  private static Long greater(Long a, Long b) {
    return Long.compareUnsigned(a, b) >= 0 ? a : b;
  }

  /** A position absorbs every ordered version of the same epoch that is not greater (LIN-8). */
  private void absorb() {
    if (!positions.isEmpty() && !objects.isEmpty()) {
      objects.entrySet().removeIf(entry -> covers(positions.get(entry.getKey().epoch()), entry.getValue()));
    }
  }

  private static boolean covers(Long present, Long counter) {
    return present != null && Long.compareUnsigned(present, counter) >= 0;
  }

  private Section joined(Section other) {
    Section result = new Section(store);
    result.opaques.addAll(opaques);
    result.opaques.addAll(other.opaques);
    result.positions.putAll(positions);
    other.positions.forEach((epoch, counter) -> result.positions.merge(epoch, counter, Section::greater));
    result.objects.putAll(objects);
    other.objects.forEach((object, counter) -> result.objects.merge(object, counter, Section::greater));
    result.absorb();
    return result;
  }

  private Section minus(Section other) {
    Section result = new Section(store);
    result.opaques.addAll(opaques);
    result.opaques.removeAll(other.opaques);
    positions.forEach((epoch, counter) -> {
      if (!covers(other.positions.get(epoch), counter)) {
        result.positions.put(epoch, counter);
      }
    });
    objects.forEach((object, counter) -> {
      if (!covers(other.objects.get(object), counter) && !covers(other.positions.get(object.epoch()), counter)) {
        result.objects.put(object, counter);
      }
    });
    return result;
  }

  /** The spelled name of the store. */
  public String store() {
    return store;
  }

  /** Whether nothing is in it. */
  public boolean isEmpty() {
    return positions.isEmpty() && objects.isEmpty() && opaques.isEmpty();
  }

  /** How many entries are in it. */
  public int size() {
    return positions.size() + objects.size() + opaques.size();
  }

  /** The entries in canonical order. */
  public List<Entry> entries() {
    List<Entry> entries = new ArrayList<>(opaques);
    positions.forEach((epoch, counter) -> entries.add(new Entry("", epoch, Long.toUnsignedString(counter))));
    objects.forEach((object, counter) ->
        entries.add(new Entry(object.key(), object.epoch(), Long.toUnsignedString(counter))));
    Collections.sort(entries);
    return entries;
  }

  /** The section in canonical spelling. */
  public String text() {
    StringBuilder text = new StringBuilder(store);
    for (Entry entry : entries()) {
      text.append('.').append(entry.text());
    }
    return text.toString();
  }

  /** The join of two section texts of one store, opened only where it must be. */
  public static String joinTexts(String a, String b) {
    if (a.equals(b)) {
      return a;
    }
    String raised = greaterOfOne(a, b);
    return raised != null ? raised : open(a).joined(open(b)).text();
  }

  /** The greater of two sections of one ordered entry each, with the same key and epoch; null for any others. */
  private static String greaterOfOne(String a, String b) {
    int last = b.lastIndexOf('.');
    if (a.lastIndexOf('.') != last || !a.regionMatches(0, b, 0, last + 1) || WireForm.entriesOf(b) != 1
        || b.endsWith("._" + b.substring(last))) {
      return null;
    }
    // Counters have no leading zero, so length and then digits decide.
    int longer = Integer.compare(a.length(), b.length());
    return (longer != 0 ? longer : a.compareTo(b)) >= 0 ? a : b;
  }

  /** What of section a section b does not cover, as canonical text; null where nothing is left. */
  public static String subtractTexts(String a, String b) {
    if (a.equals(b)) {
      return null;
    }
    Section rest = open(a).minus(open(b));
    return rest.isEmpty() ? null : rest.text();
  }
}
