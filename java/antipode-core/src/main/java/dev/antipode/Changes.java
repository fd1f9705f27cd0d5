package dev.antipode;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Which stores' sections changed in a scope, for when the budget leaves some out (WIRE-33). Kept as it came, put in order when
 * somebody asks, which is rare, or when there is much of it.
 */
final class Changes {
  private static final int MOST_EVENTS = 64;

  private record Join(Lineage before, Lineage after) {}

  private final Set<String> order = new LinkedHashSet<>();
  private final List<Object> events = new ArrayList<>();

  void write(Collection<WriteId> ids) {
    ids.forEach(id -> note(id.store()));
  }

  Lineage join(Lineage before, Lineage after) {
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
  List<String> inOrder() {
    for (Object event : events) {
      if (event instanceof Join join) {
        join.after().changedSince(join.before()).forEach(this::touch);
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
