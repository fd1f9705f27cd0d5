package dev.antipode;

import dev.antipode.internal.model.Names;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** A slow model of a lineage: sets of write identifiers, minimised pair by pair. */
record LineageModel(Set<WriteId> entries, Set<String> incomplete, Set<String> extensions) {
  static LineageModel of(Set<WriteId> entries, Set<String> incomplete, Set<String> extensions) {
    Set<WriteId> minimal = new HashSet<>();
    for (WriteId id : entries) {
      if (entries.stream().noneMatch(other -> !other.equals(id) && covers(other, id))) {
        minimal.add(id);
      }
    }
    return new LineageModel(minimal, incomplete.contains("") ? Set.of("") : Set.copyOf(incomplete), Set.copyOf(extensions));
  }

  static LineageModel of(Lineage lineage) {
    return new LineageModel(
        new HashSet<>(lineage.ids()), Set.copyOf(lineage.incomplete()), Set.copyOf(lineage.parts().extensions()));
  }

  /** Whether whoever has a has b (LIN-7, LIN-8). */
  static boolean covers(WriteId a, WriteId b) {
    if (a.equals(b)) {
      return true;
    }
    return a.store().equals(b.store())
        && a.version() instanceof Ordered mine
        && b.version() instanceof Ordered theirs
        && mine.epoch().equals(theirs.epoch())
        && (a.isPosition() || a.key().equals(b.key()))
        && mine.compareCounter(theirs.counter()) >= 0;
  }

  LineageModel union(LineageModel other) {
    return of(joined(entries, other.entries), joined(incomplete, other.incomplete), joined(extensions, other.extensions));
  }

  private static <T> Set<T> joined(Set<T> a, Set<T> b) {
    Set<T> joined = new HashSet<>(a);
    joined.addAll(b);
    return joined;
  }

  Set<WriteId> beyond(LineageModel other) {
    Set<WriteId> rest = new HashSet<>(entries);
    rest.removeIf(id -> other.entries.stream().anyMatch(covering -> covers(covering, id)));
    return rest;
  }

  LineageModel withEntries(Set<WriteId> others) {
    return new LineageModel(others, incomplete, extensions);
  }

  /** The canonical text, step by step (WIRE-19 to WIRE-22). */
  String text() {
    TreeMap<String, TreeSet<String>> stores = new TreeMap<>();
    for (WriteId id : entries) {
      String section = id.section();
      int dot = section.indexOf('.');
      stores.computeIfAbsent(section.substring(0, dot), store -> new TreeSet<>()).add(section.substring(dot + 1));
    }
    Set<String> sections = new TreeSet<>();
    stores.forEach((store, spelled) -> sections.add(store + "." + String.join(".", spelled)));
    Set<String> tail = new TreeSet<>(extensions);
    if (incomplete.contains("")) {
      tail.add("_.i");
    } else if (!incomplete.isEmpty()) {
      Set<String> names = new TreeSet<>();
      incomplete.forEach(store -> names.add(Names.spellName(store)));
      tail.add("_.i." + String.join(".", names));
    }
    StringBuilder text = new StringBuilder("1");
    sections.forEach(section -> text.append('~').append(section));
    tail.forEach(extension -> text.append('~').append(extension));
    return text.toString();
  }

  /** WIRE-33 to WIRE-35, where nothing changed here, word by word: after each section left out, the text is made again. */
  LineageModel fitted(int budget) {
    LineageModel result = this;
    while (result.text().length() > budget && !result.entries.isEmpty()) {
      String longest = "";
      String leave = "";
      for (WriteId id : result.entries) {
        LineageModel alone = result.of(id.store());
        String section = alone.text().substring(2);
        if (section.length() > longest.length()
            || section.length() == longest.length() && section.compareTo(longest) > 0) {
          longest = section;
          leave = id.store();
        }
      }
      String store = leave;
      Set<WriteId> rest = new HashSet<>(result.entries);
      rest.removeIf(id -> id.store().equals(store));
      Set<String> marks = joined(result.incomplete, Set.of(store));
      boolean namesFit = of(Set.of(), marks, Set.of()).text().length() - 1 <= Math.min(budget, 4087) / 8;
      result = of(rest, namesFit ? marks : Set.of(""), extensions);
    }
    if (result.text().length() > budget) {
      result = of(Set.of(), Set.of(""), extensions);
    }
    return result.text().length() > budget ? of(Set.of(), Set.of(""), Set.of()) : result;
  }

  private LineageModel of(String store) {
    Set<WriteId> own = new HashSet<>(entries);
    own.removeIf(id -> !id.store().equals(store));
    return of(own, Set.of(), Set.of());
  }
}
