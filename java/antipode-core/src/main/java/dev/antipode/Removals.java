package dev.antipode;

import java.util.HashSet;
import java.util.Set;

/** What was taken out of a scope, and does not come back by itself (LIN-21, LIN-22, LIN-24). */
final class Removals {
  private final Set<String> stores = new HashSet<>();
  private Lineage entries = Lineage.EMPTY;

  void add(Lineage taken) {
    entries = entries.union(taken);
  }

  void addStore(String store) {
    stores.add(store);
  }

  /** Return what of this may come in. */
  Lineage filter(Lineage other) {
    Lineage rest = other;
    for (String store : stores) {
      rest = rest.without(store);
    }
    return entries.isEmpty() ? rest : rest.without(entries);
  }
}
