package dev.antipode.shim;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.internal.scope.ScopeLog;
import dev.antipode.observer.Observers;
import dev.antipode.observer.WriteObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * One write to a store, from before it is sent until its version is known (SCOPE-14). It is pending in the scope that
 * was current when it was begun; left without a word, its outcome is unknown and it stays so.
 *
 * <pre>{@code
 * try (Write write = store.begin(key)) {
 *   reply = client.put(key, value);      // an exception leaves the outcome unknown
 *   write.record(new Ordered("", reply.version()));
 * }
 * }</pre>
 */
public final class Write implements AutoCloseable {
  private final RegisteredStore store;
  private final Key key;
  private volatile List<Part> parts = List.of(); // copied when it grows; the first is the scope's that began it
  private volatile boolean open = true;

  /** What one scope has of it; {@code scope} is null outside any, {@code noted} where no history is recorded. */
  private record Part(LineageScope scope, PendingWrite pending, WriteObserver noted) {}

  Write(RegisteredStore store, Key key) {
    this.store = store;
    this.key = key;
    joinScope();
  }

  /**
   * Makes the write pending in the current scope, too, unless it is so already: called before each further command of a
   * transaction, pipeline or batch, which several scopes may share (SCOPE-24).
   */
  public void joinScope() {
    joinScope(LineageScope.current());
  }

  /** Makes it pending in this scope likewise, whose command it is; null for none. */
  public void joinScope(LineageScope scope) {
    if (!has(scope)) {
      join(scope);
    }
  }

  /**
   * Makes it pending in the scope that is about to send or commit it, which has the server's answer in hand, too (SCOPE-24);
   * null, outside any, changes nothing.
   */
  public void executedBy(LineageScope scope) {
    if (scope != null) {
      joinScope(scope);
    }
  }

  /** The scopes whose it is. */
  public List<LineageScope> scopes() {
    return parts.stream().map(Part::scope).filter(Objects::nonNull).toList();
  }

  private boolean has(LineageScope scope) {
    for (Part part : parts) {
      if (part.scope == scope) {
        return true;
      }
    }
    return false;
  }

  private synchronized void join(LineageScope scope) {
    PendingWrite pending = new PendingWrite(store.name());
    if (scope == null) {
      ScopeLog.beginOutside(this);
    } else {
      scope.begin(pending);
    }
    List<Part> all = new ArrayList<>(parts);
    all.add(new Part(scope, pending, Observers.events().observeWrite(scope, store, pending.lineage())));
    parts = List.copyOf(all);
    if (!open) { // its end came first: whether the command was in it nobody knows
      pending.outcomeUnknown();
    }
  }

  /** What a recorded history is told of it; null where none is recorded. */
  public WriteObserver noted() {
    return parts.get(0).noted;
  }

  /**
   * The write has this version: an object's, or a position where the store's shim gives positions. One that no lineage can
   * hold leaves the lineage incomplete: the write has happened, so nothing is thrown into the application (SHIM-2).
   */
  public void record(Version version) {
    boolean isPosition = store.givesPositions() && version instanceof Ordered;
    settle(version, isPosition, isPosition);
  }

  /** A write that changed nothing takes where the store is now, without the check of plausibility (LIN-29). */
  public void recordUpperBound(Ordered position) {
    settle(position, true, false);
  }

  private void settle(Version version, boolean isPosition, boolean checks) {
    WriteId id;
    try {
      id = isPosition ? new WriteId(store.name(), Key.EMPTY, version) : store.writeId(key, version);
    } catch (RuntimeException error) {
      Logs.warn(
          "AP517", "version " + store.name(), "a write to " + store.name() + " is recorded as incomplete: " + error);
      recordIncomplete("malformed", error.toString());
      return;
    }
    for (Part part : end()) {
      if (part.scope == null) {
        ScopeLog.orphan(store.name());
      } else {
        if (checks) {
          checkPlausible(part, (Ordered) version);
        }
        part.scope.written(part.pending, id);
      }
      tellDone(part, id);
    }
  }

  /** The write happened, and its version cannot be had: the lineage is incomplete for the store (EPOCH-5). */
  public void recordIncomplete(String reason, String detail) {
    for (Part part : end()) {
      if (part.scope == null) {
        ScopeLog.orphan(store.name());
      } else {
        part.scope.markIncomplete(reason, detail, store.name());
        part.scope.end(part.pending); // last of all, or a copy that left before would lack it unmarked (SCOPE-14)
      }
      tellDone(part, null);
    }
  }

  /**
   * Return what may rest beside the next value: the current scope as it is now, stores with other writes in flight marked;
   * outside any scope it may be incomplete (SCOPE-32).
   *
   * @param lineageOut whether lineages are given to values here
   */
  public Lineage lineageBeside(boolean lineageOut) {
    Part part = current();
    LineageScope scope = part.scope;
    if (scope == null) {
      return ScopeLog.lineageBesideOutside(lineageOut, this);
    }
    Lineage lineage = scope.held();
    List<String> others = scope.pending().stream()
        .filter(each -> each != part.pending).map(PendingWrite::store).distinct().sorted().toList();
    return others.isEmpty() ? lineage : lineage.markedIncomplete(others);
  }

  private Part current() {
    List<Part> all = parts;
    LineageScope scope = all.size() == 1 ? null : LineageScope.current();
    return all.stream().filter(each -> each.scope == scope).findFirst().orElse(all.get(0));
  }

  /** Whether it was neither recorded nor abandoned yet. */
  public boolean isOpen() {
    return open;
  }

  /** The write is known not to have happened: a rollback, a refusal by the server (SCOPE-17). */
  public void abandon() {
    for (Part part : end()) {
      if (part.scope != null) {
        part.scope.end(part.pending);
      }
      if (part.noted != null) {
        part.noted.notDone();
      }
    }
  }

  /**
   * The write was sent, and another thread will hear of its outcome: until then what leaves is marked (SCOPE-16), which is no
   * finding, because no transaction of this task is open (SCOPE-18).
   */
  public void inFlight() {
    parts.forEach(part -> part.pending.inFlight());
  }

  /** Nobody knows whether the write happened: it stays pending, and what leaves stays marked (SCOPE-17). */
  public void outcomeUnknown() {
    if (open) {
      for (Part part : end()) {
        part.pending.outcomeUnknown();
        if (part.noted != null) {
          part.noted.unknown(key);
        }
      }
    }
  }

  private void tellDone(Part part, WriteId id) {
    if (part.noted != null) {
      part.noted.done(id, key);
    }
  }

  /** Ends a write that was neither recorded nor abandoned: its outcome is unknown. */
  @Override
  public void close() {
    outcomeUnknown();
  }

  /** Its end has come: nobody joins any more. The scopes whose it was. */
  private synchronized List<Part> end() {
    open = false;
    return parts;
  }

  /** A lineage that reached a writer before its write cannot hold a greater position than the write got (LIN-28). */
  private void checkPlausible(Part part, Ordered received) {
    Lineage atSending = part.pending.lineage();
    if (atSending.sectionText(store.name()) == null) {
      return;
    }
    OptionalLong only = atSending.onlyPosition(store.name(), received.epoch());
    if (only.isPresent() && received.compareCounter(only.getAsLong()) >= 0) {
      return;
    }
    for (WriteId known : atSending.ofStore(store.name())) {
      if (known.isPosition()
          && known.version() instanceof Ordered other
          && other.epoch().equals(received.epoch())
          && other.compareCounter(received.counter()) > 0) {
        String detail = "position " + other + " came in before a write that got " + received;
        part.scope.discardImplausible(known, detail);
        Logs.warn(
            "AP407",
            "implausible " + store.name(),
            "dropped an impossible entry of " + store.name() + ": " + detail
                + ". It is forged, or the store was rolled back.");
      }
    }
  }
}
