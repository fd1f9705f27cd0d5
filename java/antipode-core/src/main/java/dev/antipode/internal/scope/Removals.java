package dev.antipode.internal.scope;

import dev.antipode.Lineage;
import java.util.HashSet;
import java.util.Set;

/** What was taken out of a scope, and does not come back by itself (LIN-21, LIN-22, LIN-24). */
public final class Removals {
  private final Set<String> stores = new HashSet<>();
  private Lineage entries = Lineage.EMPTY;

  /** Take these entries out of what comes in from now on. */
  public void add(Lineage taken) {
    entries = entries.union(taken);
  }

  /** Take out all of this store likewise. */
  public void addStore(String store) {
    stores.add(store);
  }

  /** Return what of this may come in. */
  public Lineage filter(Lineage other) {
    Lineage rest = other;
    for (String store : stores) {
      rest = rest.without(store);
    }
    return entries.isEmpty() ? rest : rest.without(entries);
  }
}
