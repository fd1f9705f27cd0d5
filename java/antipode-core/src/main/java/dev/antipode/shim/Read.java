package dev.antipode.shim;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Reading;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.observer.Observers;
import dev.antipode.observer.ReadObserver;
import dev.antipode.observer.ReadReply;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;

/**
 * One read of a wrapped client, from before it is sent until its reply is there. A shim says once what it returned; what it
 * waits for (BAR-50, BAR-51), what {@code reading()} and automatic merging take from it (SHIM-13), and what dry-run (REC-12)
 * and a recorded history (HIST-28) are told is decided here.
 *
 * <pre>{@code
 * try (Read read = store.read(waitsOnRead, List.of(key))) {
 *   read.await(server, timeout);
 *   reply = client.get(key);
 *   read.returned(new ReadReply(server, List.of(new ReadValue(…))));
 * }
 * }</pre>
 */
public final class Read implements AutoCloseable {
  /** A read that nobody observes and that waits for nothing: it costs nothing. */
  public static final Read PLAIN = new Read(null, null, null, null, false, false, null);

  private final RegisteredStore store;
  private final Reading reading; // null where none collects
  private final Reading after; // whose lineage it is no older than; null where it does not say
  private final LineageScope scope;
  private final boolean waits; // for what the scope holds
  private final boolean merges;
  private final ReadObserver observer; // null where nobody is told

  private Read(
      RegisteredStore store,
      Reading reading,
      Reading after,
      LineageScope scope,
      boolean waits,
      boolean merges,
      ReadObserver observer) {
    this.store = store;
    this.reading = reading;
    this.after = after;
    this.scope = scope;
    this.waits = waits;
    this.merges = merges;
    this.observer = observer;
  }

  static Read of(
      RegisteredStore store, boolean waitsOnRead, Collection<Key> keys, boolean isTold, boolean isSure) {
    Mode mode = store.mode();
    Reading reading = Reading.current();
    if (mode == Mode.OFF && reading == null) { // else what the values depend on is asked for in so many words
      return PLAIN;
    }
    LineageScope scope = LineageScope.current();
    Reading after = mode == Mode.ENFORCE && reading != null && reading.after().isPresent() ? reading : null;
    boolean waits = waitsOnRead && mode == Mode.ENFORCE && scope != null && after == null;
    boolean merges = mode != Mode.OFF && scope != null && ProcessSettings.inForce().autoMerge();
    Lineage held = scope == null ? Lineage.EMPTY : scope.held();
    ReadObserver observer = isTold && mode != Mode.OFF ? Observers.events().observeRead(scope, store, held, keys, isSure) : null;
    boolean isPlain = reading == null && !waits && !merges && observer == null;
    return isPlain ? PLAIN : new Read(store, reading, after, scope, waits, merges, observer);
  }

  /** Return a read that only waits as this one does: nothing is read, or others tell of it. */
  public Read onlyWaiting() {
    return new Read(store, null, after, scope, waits, false, null);
  }

  /** Return a read that only tells observers: another one of the same store waits, and collects. */
  public Read onlyTold() {
    return observer == null ? PLAIN : new Read(store, null, null, scope, false, false, observer);
  }

  /** Return the scope that it is made in; null outside any. */
  public LineageScope scope() {
    return scope;
  }

  /** Return whether it may have to wait, by the time it is sent. */
  public boolean mayWait() {
    return after != null || waits;
  }

  /** Return whether another one that is made here and now would be told, and wait, like it. */
  public boolean isCallers() {
    return reading == Reading.current() && scope == LineageScope.current();
  }

  /** Return whether another one, sent with it, waits for the same. */
  public boolean waitsLike(Read other) {
    return scope == other.scope && after == other.after && waits == other.waits;
  }

  /** Return whether another one, sent with it, waits for the same, and the same ones collect what it depends on. */
  public boolean isLike(Read other) {
    return reading == other.reading && merges == other.merges && waitsLike(other);
  }

  /**
   * Return what it has to see first, of its own store: for a shim that waits on the read's own connection.
   *
   * @throws dev.antipode.BarrierException where it is not to be sent, by the policies: its store is misspelt (BAR-51)
   */
  public List<WriteId> required() {
    return store == null ? List.of() : store.required(after, scope, waits);
  }

  /**
   * Wait by the engine until the server shows what it has to see first.
   *
   * @param timeout tightened by the request's own deadline
   * @return whether all of it is there; not where there is nothing, or the policies let the read go on without
   * @throws dev.antipode.BarrierException what a barrier throws that waited in vain, by the policies
   */
  public boolean await(Server server, Duration timeout) {
    return store != null && store.awaitRead(server, timeout, after, scope, waits);
  }

  /** Return whether somebody collects what its values depend on: versions, positions and lineages at rest. */
  public boolean collects() {
    return reading != null || merges;
  }

  /** Return whether observers are told of it. */
  public boolean isTold() {
    return observer != null;
  }

  /** Return whether anybody wants to know what it returns. */
  public boolean isObserved() {
    return observer != null || collects();
  }

  /** Note that its reply has come. Once it was closed, observers hear of it no more. */
  public void returned(ReadReply reply) {
    List<ReadValue> values = reply.values();
    if (observer != null) { // before it is merged what the values depend on
      WriteId covers = values.stream().map(ReadValue::covers).filter(Objects::nonNull).findFirst().orElse(null);
      observer.returned(reply, covers);
    }
    if (!collects()) {
      return;
    }
    Lineage depends = Lineage.EMPTY;
    for (ReadValue each : values) {
      WriteId own = each.covers() != null ? each.covers() : each.version();
      Lineage found = each.lineage() == null ? Lineage.EMPTY : each.lineage();
      depends = depends.union(own == null ? found : found.including(own));
      depends = each.isKnown() ? depends : depends.markedIncomplete(store.name());
    }
    if (reading != null) {
      reading.saw(depends);
    }
    if (merges) {
      scope.transferRead(depends);
    }
  }

  /** Ends it; where no reply has come, that is told. */
  @Override
  public void close() {
    if (observer != null) {
      observer.failed();
    }
  }
}
