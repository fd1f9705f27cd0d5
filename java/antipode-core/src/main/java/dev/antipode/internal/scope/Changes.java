package dev.antipode.internal.scope;

import dev.antipode.Lineage;
import dev.antipode.WriteId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;

/**
 * Which stores' sections changed in a scope, for when the budget leaves some out (WIRE-33). Kept as it came, put in order when
 * somebody asks, which is rare, or when there is much of it.
 */
public final class Changes {
  private static final int MOST_EVENTS = 64;

  private record Join(Lineage before, Lineage after) {}

  private final BiFunction<Lineage, Lineage, Set<String>> changed; // the stores that differ, of the later and the earlier
  private final Set<String> order = new LinkedHashSet<>();
  private final List<Object> events = new ArrayList<>();

  /** Begin with none; {@code changed} returns the stores in which the first lineage differs from the second. */
  public Changes(BiFunction<Lineage, Lineage, Set<String>> changed) {
    this.changed = changed;
  }

  /** Note the stores of writes. */
  public void write(Collection<WriteId> ids) {
    ids.forEach(id -> note(id.store()));
  }

  /** Note what a join has changed; returns the lineage after it. */
  public Lineage join(Lineage before, Lineage after) {
    if (after != before) {
      note(new Join(before, after));
    }
    return after;
  }

  private void note(Object event) {
    ScopeLog.knowLineage();
    events.add(event);
    if (events.size() > MOST_EVENTS) {
      inOrder();
    }
  }

  /** Names of the stores, the oldest change first. */
  public List<String> inOrder() {
    for (Object event : events) {
      if (event instanceof Join join) {
        changed.apply(join.after(), join.before()).forEach(this::touch);
      } else {
        touch((String) event);
      }
    }
    events.clear();
    return List.copyOf(order);
  }

  private void touch(String store) {
    order.remove(store);
    order.add(store);
  }
}
