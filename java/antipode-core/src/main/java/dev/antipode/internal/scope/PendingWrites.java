package dev.antipode.internal.scope;

import dev.antipode.Lineage;
import dev.antipode.shim.PendingWrite;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** A scope's writes in flight (SCOPE-14). Changed under the scope's lock, and read without it. */
public final class PendingWrites {
  private volatile Set<PendingWrite> all = Set.of(); // copied when it changes: it is looked at more often

  /** Add a write that begins, with the lineage of its scope as it is now. */
  public void add(PendingWrite write, Lineage lineage) {
    PendingWriteAccess.sentWith(write, lineage);
    ScopeLog.knowLineage();
    Set<PendingWrite> more = Collections.newSetFromMap(new IdentityHashMap<>());
    more.addAll(all);
    more.add(write);
    all = more;
  }

  /** Take a write out; null, or one that is not there, is none. */
  public void remove(PendingWrite write) {
    if (write != null && all.contains(write)) {
      Set<PendingWrite> fewer = Collections.newSetFromMap(new IdentityHashMap<>());
      fewer.addAll(all);
      fewer.remove(write);
      all = fewer.isEmpty() ? Set.of() : fewer;
    }
  }

  /** Return whether none is pending. */
  public boolean isEmpty() {
    return all.isEmpty();
  }

  /** Return all of them. */
  public List<PendingWrite> list() {
    return List.copyOf(all);
  }

  /** Return the names of their stores, in order. */
  public List<String> stores() {
    return all.stream().map(PendingWrite::store).distinct().sorted().toList();
  }

  /** Return those of a task of which it is known that they have not been committed (SCOPE-18). */
  public List<PendingWrite> uncommitted(Thread task) {
    return all.stream().filter(write -> PendingWriteAccess.isOf(write, task) && !write.isUnknown()).toList();
  }
}
