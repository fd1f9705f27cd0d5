package dev.antipode;

import dev.antipode.internal.scope.Changes;
import dev.antipode.internal.scope.GapList;
import dev.antipode.internal.scope.OpenStreams;
import dev.antipode.internal.scope.PendingWrites;
import dev.antipode.internal.scope.Removals;
import dev.antipode.internal.scope.ScopeAccess;
import dev.antipode.internal.scope.ScopeLog;
import dev.antipode.internal.scope.TimesOff;
import dev.antipode.internal.scope.UnflushedChanges;
import dev.antipode.observer.ObservedScope;
import dev.antipode.observer.Observers;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.PendingWrite;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.ImplicitContextKeyed;
import io.opentelemetry.context.Scope;
import java.util.Collection;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;

/**
 * What one request, message or task depends on, held by OpenTelemetry's {@link Context} (chapter SCOPE of the
 * specification). Joins are atomic: its threads and tasks share it.
 *
 * <p>It closes when what opened it ends, or by {@link #stop}; what is appended later is dropped and counted, with a warning.
 */
public final class LineageScope implements AutoCloseable, ImplicitContextKeyed, ObservedScope {
  private static final ContextKey<LineageScope> KEY = ContextKey.named("antipode-scope");
  private static final Gap ENDED = new Gap("unscoped", "", "it has ended: what goes on in it may depend on others' writes");

  private final ScopeKind kind;
  private final Delivery delivery;
  private final String site;
  private final Object lock = new Object();

  // Under the lock; what is volatile is read without it.
  private volatile Lineage lineage;
  private volatile Lineage inbound;
  private final Changes changes = new Changes(Lineage::changedSince);
  private final Removals removals = new Removals();
  private final PendingWrites pending = new PendingWrites();
  private final GapList gaps = new GapList();
  private volatile boolean closed;
  private boolean stopped;
  private int holds;

  private final OpenStreams streams = new OpenStreams();
  private final TimesOff timesOff = new TimesOff();
  private volatile boolean sent;
  private volatile OptionalLong deadline = OptionalLong.empty();
  private volatile Object proof;
  private volatile Supplier<String> endpoint;
  private volatile String queue = "";
  // Where it was made current by `open`; null for scopes that a middleware makes current itself.
  private Scope current;
  private Thread opener;

  static {
    ScopeAccess.give(LineageScope::hold);
  }

  private LineageScope(Lineage lineage, ScopeKind kind, Delivery delivery) {
    this.kind = kind;
    this.delivery = delivery;
    this.lineage = lineage.withoutExtensionsOfBranches();
    this.inbound = this.lineage;
    ScopeLog.know(this.lineage);
    this.site = kind == ScopeKind.REQUEST ? kind.word() : CallSite.current();
    Observers.events().onScopeOpened(kind);
  }

  // Making one

  /** A scope that nobody is in yet, for middlewares: they make it current where they run the application. */
  public static LineageScope create(Lineage lineage, ScopeKind kind) {
    return new LineageScope(lineage, kind, null);
  }

  /** The same for a message; {@code delivery} is as for {@code open}. */
  public static LineageScope create(Lineage lineage, ScopeKind kind, Delivery delivery) {
    return new LineageScope(lineage, kind, delivery);
  }

  /** A scope that is current in this thread until it is closed: for try-with-resources. */
  public static LineageScope open(Lineage lineage, ScopeKind kind) {
    return open(lineage, kind, null);
  }

  /** The same for a message; {@code delivery} says whether a barrier may give it back, null where nobody can. */
  public static LineageScope open(Lineage lineage, ScopeKind kind, Delivery delivery) {
    LineageScope scope = new LineageScope(lineage, kind, delivery);
    scope.current = scope.makeCurrent();
    scope.opener = Thread.currentThread();
    return scope;
  }

  /** The scope of the running request, message or task; null outside any. */
  public static LineageScope current() {
    return Context.current().get(KEY);
  }

  /** The scope that a Context holds; null where it holds none. */
  public static LineageScope in(Context context) {
    return context.get(KEY);
  }

  @Override
  public Context storeInContext(Context context) {
    return context.with(KEY, this);
  }

  // Reading it

  /** The lineage as it is now, to put beside data or to wait for: stores with a write in flight are marked (SCOPE-20). */
  public Lineage lineage() {
    return lineage(hasEndedHere());
  }

  private Lineage lineage(boolean ended) {
    UnflushedChanges.look(this);
    if (pending.isEmpty()) {
      return held(ended);
    }
    synchronized (lock) {
      return pending.isEmpty() ? held(ended) : held(ended).markedIncomplete(pendingStores());
    }
  }

  /** The same without these marks, never to be handed out; incomplete anywhere where {@link #passingGaps} are. */
  public Lineage held() {
    return held(hasEndedHere());
  }

  private boolean hasEndedHere() {
    return closed && current() == this;
  }

  private Lineage held(boolean ended) { // streams are asked before: a stream's lineage is joined before the stream goes
    boolean marked = ended || !streams.open().isEmpty() || timesOff.isAny();
    Lineage now = lineage;
    return marked ? now.markedIncomplete() : now;
  }

  /** What opened it. */
  @Override
  public ScopeKind kind() {
    return kind;
  }

  /** The message that it was opened for; null for anything else. */
  public Delivery delivery() {
    return delivery;
  }

  /** Whether it has ended. */
  public boolean isClosed() {
    return closed;
  }

  /** Why its lineage is not complete, as far as this process knows. */
  public List<Gap> gaps() {
    synchronized (lock) {
      List<Gap> all = gaps.list();
      all.addAll(passingGaps());
      all.addAll(timesOff.gaps());
      return all;
    }
  }

  /** What it lacks as things are now: the lineage of messages in hand (PROP-28), or it is current and has ended (SCOPE-34). */
  public List<Gap> passingGaps() {
    return hasEndedHere() ? List.of(ENDED) : streams.open();
  }

  /**
   * The lineage as it may leave with a request, message or response: marked, and {@code on_pending} applied.
   *
   * @throws PendingWriteException with {@code on_pending=raise} where a write of this very task has not been committed
   */
  public Lineage outgoing() {
    UnflushedChanges.look(this);
    if (!pending.isEmpty()) {
      ScopeLog.leaving(publishedBeforeCommit(), pending());
    }
    return lineage();
  }

  /** What this scope has beyond what it was opened with: what a response carries back (PROP-13). */
  public Lineage additions() {
    Lineage now = lineage(false); // also where it has ended just now: it is the response of its own
    Lineage before = inbound;
    return now == before ? Lineage.EMPTY : now.addedTo(before);
  }

  /** The stores whose sections changed here, the oldest change first (WIRE-33). */
  public List<String> changedStores() {
    synchronized (lock) {
      return changes.inOrder();
    }
  }

  // Changing it

  /** Add writes to the lineage (paper table 2); a closed scope drops and counts them, and is incomplete (SCOPE-4). */
  public void append(WriteId... ids) {
    append(List.of(ids));
  }

  /** Adds writes to the lineage. */
  public void append(Collection<WriteId> ids) {
    if (!ids.isEmpty()) {
      append(ids, null);
    }
  }

  private void append(Collection<WriteId> ids, PendingWrite ended) {
    String store = ids.iterator().next().store();
    boolean late;
    synchronized (lock) {
      late = closed;
      if (late) {
        lineage = lineage.markedIncomplete(ids.stream().map(WriteId::store).toList());
      } else {
        lineage = lineage.including(ids);
        changes.write(ids);
      }
      pending.remove(ended);
    }
    if (late) {
      ScopeLog.tooLate(store, site);
    } else if (sent) {
      ScopeLog.afterHeader(store);
    }
  }

  /** Makes this scope depend on a lineage (paper table 2): of an earlier request, carried by hand. */
  public void transfer(Lineage other) {
    join(other, false);
    Observers.events().onLineageReceived(this, List.of(), other);
  }

  /** Makes this scope depend on what was read: a recorded history has that by the read itself (HIST-33). */
  public void transferRead(Lineage read) {
    join(read, false);
  }

  /** Joins what came in by a response: without what was removed from this scope before (LIN-24). */
  public void merge(Lineage other) {
    join(other, true);
  }

  /** Joins what the request or message itself brought: it is not sent back with the response. */
  public void receive(Lineage other) {
    come(other, brought -> {
      inbound = inbound.union(brought);
      return lineage.union(removals.filter(brought));
    });
  }

  /** Whether it is of a request or message that itself brought a lineage (REC-18). */
  @Override
  public boolean hasBrought() {
    return inbound.hasContent() && (kind == ScopeKind.REQUEST || kind == ScopeKind.MESSAGE);
  }

  private void join(Lineage other, boolean filter) {
    come(other, brought -> changes.join(lineage, lineage.union(filter ? removals.filter(brought) : brought)));
  }

  private void come(Lineage other, UnaryOperator<Lineage> joining) {
    if (!other.hasContent()) {
      return;
    }
    boolean late;
    synchronized (lock) {
      late = closed;
      lineage = late
          ? lineage.markedIncomplete(other.isComplete() ? other.stores() : List.of())
          : joining.apply(other.withoutExtensionsOfBranches());
    }
    if (late) {
      ScopeLog.tooLate(other.stores().stream().findFirst().orElse(""), site);
    }
  }

  /** Takes a write out, and all that it covers; it holds for the scope: a response does not bring it back (LIN-21). */
  public Removal remove(WriteId id) {
    return remove(Lineage.of(id));
  }

  /** Takes out what a lineage covers, likewise. */
  public Removal remove(Lineage what) {
    Lineage after;
    Lineage taken;
    synchronized (lock) {
      after = lineage.without(what);
      taken = lineage.beyond(after);
      lineage = after;
      removals.add(taken.union(what.beyond(Lineage.EMPTY)));
    }
    return new Removal(taken, what.ids().stream().filter(after::covers).toList());
  }

  /** Takes a whole store out, positions and its mark of incompleteness included, likewise (LIN-22). */
  public Removal remove(String store) {
    synchronized (lock) {
      Lineage after = lineage.without(store);
      Lineage taken = lineage.beyond(after);
      lineage = after;
      removals.add(taken);
      removals.addStore(store);
      return new Removal(taken, List.of());
    }
  }

  /** The application vouches that nothing is missing: every mark of incompleteness goes (LIN-23, LIN-26). */
  public void removeIncomplete() {
    synchronized (lock) {
      lineage = lineage.vouched();
      streams.clear();
      timesOff.clear();
    }
  }

  /** Records that something which belonged here is missing, in these stores or anywhere (LIN-17). */
  public void markIncomplete(String reason, String detail, String... stores) {
    ScopeLog.knowLineage();
    synchronized (lock) {
      lineage = lineage.markedIncomplete(stores);
    }
    for (String store : stores.length == 0 ? new String[] {""} : stores) {
      noteGap(reason, store, detail);
      Observers.events().onLineageIncomplete(reason, store, current(), true);
    }
  }

  /** Keeps a reason for the gaps of a barrier without marking the lineage: an untrusted one was dropped (TRUST-27). */
  public void noteGap(String reason, String store, String detail) {
    synchronized (lock) {
      gaps.add(new Gap(reason, store, detail));
    }
  }

  // Response streams

  /**
   * A message of a response stream is in hand whose lineage comes at the stream's end: until then the scope is incomplete
   * anywhere (PROP-28). Said of every message: the application may have vouched for those before. What is given here ends it.
   */
  public void streaming(Gap stream) {
    streams.add(stream);
  }

  /** The stream's end came, and what it brought is joined; or is known to be missing, and marked. */
  public void streamed(Gap stream) {
    streams.remove(stream);
  }

  // Writes in flight

  /** Notes a write that is in flight, with the lineage as it is now; copies that leave meanwhile are marked. */
  public void begin(PendingWrite write) {
    synchronized (lock) {
      pending.add(write, lineage);
    }
  }

  /** The write has its identifier, or is known not to have happened. */
  public void end(PendingWrite write) {
    synchronized (lock) {
      pending.remove(write);
    }
  }

  /** The write has this identifier: {@link #append} and {@link #end} in one step. */
  public void written(PendingWrite write, WriteId id) {
    append(List.of(id), write);
  }

  /** The writes that are in flight now, those of unknown outcome included. */
  public List<PendingWrite> pending() {
    return pending.list();
  }

  /** Names of the stores with a write in flight, in order. */
  public List<String> pendingStores() {
    return pending.stores();
  }

  /** The pending writes of the calling task itself: what leaves now leaves before their commit (SCOPE-18). */
  public List<PendingWrite> publishedBeforeCommit() {
    return pending.uncommitted(Thread.currentThread());
  }

  /** Drops an entry that cannot be true, and marks its store: what it absorbed is lost (LIN-28). */
  public void discardImplausible(WriteId id, String detail) {
    synchronized (lock) {
      lineage = lineage.without(id);
    }
    Observers.events().onLineageDropped("implausible", "write");
    markIncomplete("implausible", detail, id.store());
  }

  // Ending it

  /** Ends the scope (paper table 2); a detached one lives on until the work that carries it has ended (SCOPE-12). */
  public void stop() {
    synchronized (lock) {
      stopped = true;
      closed = timesOff.end(holds == 0);
    }
  }

  /** Ends the scope; what was current in this thread before it was opened is current again. Twice is harmless. */
  @Override
  public void close() {
    stop();
    Scope restored = null;
    synchronized (lock) {
      if (opener == Thread.currentThread()) { // another thread has a Context of its own
        restored = current;
        current = null;
        opener = null;
      }
    }
    if (restored != null) {
      restored.close();
    }
  }

  /** Keeps a detached scope open for work that carries it; what ends last of it closes a scope that was stopped meanwhile. */
  private void hold(int works) {
    synchronized (lock) {
      holds += works;
      closed = works < 0 ? timesOff.end(stopped && holds == 0) : closed;
    }
  }

  // What middlewares, consumers and barriers note in it

  /** When the request itself gives up, by {@link System#nanoTime}; it tightens every barrier in it (PROP-25). */
  public OptionalLong deadline() {
    return deadline;
  }

  /** Says when the request itself gives up, by {@link System#nanoTime}. */
  public void deadline(long nanoTime) {
    deadline = OptionalLong.of(nanoTime);
  }

  /** The response's header has left: what is written from now on comes too late for the caller (PROP-16). */
  public void sent() {
    sent = true;
  }

  /** What the last barrier proved, kept by the barrier for its free path. */
  public Object proof() {
    return proof;
  }

  /** Keeps what a barrier has proved. */
  public void proof(Object proved) {
    proof = proved;
  }

  /** A request's route as the framework knows it by then, never the path; where a message's consumer was registered (REC-7). */
  public void endpoint(Supplier<String> route) {
    endpoint = route;
  }

  /** What opened it: what {@link #endpoint} was told where that is known, else the site. */
  @Override
  public String openedBy() {
    Supplier<String> route = endpoint;
    String known = route == null ? null : route.get();
    return known == null ? site : known;
  }

  /** Of a message: the logical name of the store that it came from; empty where no shim knows it. */
  @Override
  public String queue() {
    return queue;
  }

  /** Says which store a message came from. */
  public void queue(String store) {
    queue = store;
  }

  /** The kind and whether it has ended; never the lineage, which holds keys (OBS-5). */
  @Override
  public String toString() {
    return "LineageScope[" + kind + (closed ? ", closed]" : ", open]");
  }
}
