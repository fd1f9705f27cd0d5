package dev.antipode;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** A scope's writes in flight (SCOPE-14). Changed under the scope's lock, and read without it. */
final class PendingWrites {
  private volatile Set<PendingWrite> all = Set.of(); // copied when it changes: it is looked at more often

  void add(PendingWrite write) {
    ScopeLog.knowLineage();
    Set<PendingWrite> more = Collections.newSetFromMap(new IdentityHashMap<>());
    more.addAll(all);
    more.add(write);
    all = more;
  }

  void remove(PendingWrite write) {
    if (write != null && all.contains(write)) {
      Set<PendingWrite> fewer = Collections.newSetFromMap(new IdentityHashMap<>());
      fewer.addAll(all);
      fewer.remove(write);
      all = fewer.isEmpty() ? Set.of() : fewer;
    }
  }

  boolean isEmpty() {
    return all.isEmpty();
  }

  List<PendingWrite> list() {
    return List.copyOf(all);
  }

  /** Return the names of their stores, in order. */
  List<String> stores() {
    return all.stream().map(PendingWrite::store).distinct().sorted().toList();
  }

  /** Return those of a task of which it is known that they have not been committed (SCOPE-18). */
  List<PendingWrite> uncommitted(Thread task) {
    return all.stream().filter(write -> write.isOf(task) && !write.isUnknown()).toList();
  }
}
