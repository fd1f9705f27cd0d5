package dev.antipode.shim;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Logs;
import dev.antipode.Ordered;
import dev.antipode.PendingWrite;
import dev.antipode.ScopeLog;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.history.NotedWrite;
import dev.antipode.history.Recorder;
import java.util.List;
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
  private final PendingWrite pending;
  private final LineageScope scope;
  private final NotedWrite noted; // null where no history is recorded
  private boolean open = true;

  Write(RegisteredStore store, Key key) {
    this.store = store;
    this.key = key;
    this.pending = new PendingWrite(store.name());
    this.scope = LineageScope.current();
    if (scope != null) {
      scope.begin(pending);
    }
    this.noted = Recorder.isOn() ? Recorder.noteWrite(scope, store, pending.lineage()) : null;
  }

  /** What a recorded history is told of it; null where none is recorded. */
  public NotedWrite noted() {
    return noted;
  }

  /** The write has this version: an object's, or a position where the store's shim gives positions. */
  public void record(Version version) {
    WriteId id = store.givesPositions() && version instanceof Ordered position
        ? WriteId.position(store.name(), position.epoch(), position.counter())
        : store.writeId(key, version);
    if (scope == null) {
      ScopeLog.orphan(store.name());
    } else {
      if (id.isPosition()) {
        checkPlausible((Ordered) id.version());
      }
      scope.written(pending, id);
    }
    open = false;
    tellDone(id);
  }

  /** A write that changed nothing takes where the store is now, without the check of plausibility (LIN-29). */
  public void recordUpperBound(Ordered position) {
    WriteId id = WriteId.position(store.name(), position.epoch(), position.counter());
    if (scope == null) {
      ScopeLog.orphan(store.name());
    } else {
      scope.append(id);
    }
    end();
    tellDone(id);
  }

  /** The write happened, and its version cannot be had: the lineage is incomplete for the store (EPOCH-5). */
  public void recordIncomplete(String reason, String detail) {
    if (scope == null) {
      ScopeLog.orphan(store.name());
    } else {
      scope.markIncomplete(reason, detail, store.name());
    }
    end();
    tellDone(null);
  }

  /** What may rest beside this write's value: the scope as it is now, stores with other writes in flight marked. */
  public Lineage lineageBeside() {
    if (scope == null) {
      return Lineage.EMPTY;
    }
    Lineage lineage = scope.lineage();
    List<String> others =
        scope.pending().stream().filter(each -> each != pending).map(PendingWrite::store).distinct().sorted().toList();
    return others.isEmpty() ? lineage : lineage.markedIncomplete(others);
  }

  /** Whether it was neither recorded nor abandoned yet. */
  public boolean isOpen() {
    return open;
  }

  /** The write is known not to have happened: a rollback, a refusal by the server (SCOPE-17). */
  public void abandon() {
    end();
    if (noted != null) {
      noted.notDone();
    }
  }

  /**
   * The write was sent, and another thread will hear of its outcome: until then what leaves is marked (SCOPE-16), which is no
   * finding, because no transaction of this task is open (SCOPE-18).
   */
  public void inFlight() {
    pending.inFlight();
  }

  /** Nobody knows whether the write happened: it stays pending, and what leaves stays marked (SCOPE-17). */
  public void outcomeUnknown() {
    if (open) {
      open = false;
      pending.outcomeUnknown();
      if (noted != null) {
        noted.unknown(key);
      }
    }
  }

  private void tellDone(WriteId id) {
    if (noted != null) {
      noted.done(id, key);
    }
  }

  /** Ends a write that was neither recorded nor abandoned: its outcome is unknown. */
  @Override
  public void close() {
    outcomeUnknown();
  }

  /** The write is pending no more: last of all, or a copy that left before would lack it unmarked (SCOPE-14). */
  private void end() {
    open = false;
    if (scope != null) {
      scope.end(pending);
    }
  }

  /** A lineage that reached a writer before its write cannot hold a greater position than the write got (LIN-28). */
  private void checkPlausible(Ordered received) {
    Lineage atSending = pending.lineage();
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
        scope.discardImplausible(known, detail);
        Logs.warn(
            "implausible " + store.name(),
            "dropped an impossible entry of " + store.name() + ": " + detail
                + ". It is forged, or the store was rolled back.");
      }
    }
  }
}
