package dev.antipode.internal.engine;

import dev.antipode.UnprovenKind;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Logs;
import dev.antipode.shim.ServerSource;
import dev.antipode.shim.Visibility;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Stands for the servers that somebody else names (a supplier, a client that is not connected yet), as long as nobody has
 * named them (BAR-52 to BAR-54). Who waits for a write here waits for that answer, and then at each of the servers. It proves
 * nothing: without an answer the store is unproven at the deadline, or at once where an answer was known.
 */
public class Discovery extends ServerEngine implements ServerSource {
  /** Whose servers are named, and for whom. */
  public enum SourceKey {
    /** Those that a list names: barriers of the region ask them. */
    LISTED(false, true, false),
    /** A wrapped client's own, known once it has connected. */
    CLIENTS(true, true, true),
    /** The same, of a wrap that names the region's servers: barriers of reach replica alone ask it (BAR-52). */
    CLIENTS_ALONE(true, false, true),
    /** A wrapped client's own, which somebody else names, and may name otherwise later. */
    NAMED(true, true, false),
    /** The same, of a wrap that names the region's servers. */
    NAMED_ALONE(true, false, false);

    private final boolean isOwn;
    private final boolean isOfRegion;
    private final boolean isOnce;

    SourceKey(boolean isOwn, boolean isOfRegion, boolean isOnce) {
      this.isOwn = isOwn;
      this.isOfRegion = isOfRegion;
      this.isOnce = isOnce;
    }

    /** Return whether they are a wrapped client's own. */
    public boolean isOwn() {
      return isOwn;
    }

    /** Return whether barriers of the region ask them. */
    public boolean isOfRegion() {
      return isOfRegion;
    }

    /** Return for whom servers are named that somebody names in the place of these. */
    public SourceKey again() {
      return this == CLIENTS ? NAMED : this == CLIENTS_ALONE ? NAMED_ALONE : this;
    }

    /** Return whether the first answer is the last that is asked for. */
    public boolean isOnce() {
      return isOnce;
    }
  }

  private static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long LAST_PAUSE = TimeUnit.MILLISECONDS.toNanos(500);

  private static volatile long refresh = TimeUnit.SECONDS.toNanos(5); // the servers are asked for again so often (BAR-22)
  private static volatile long stands = TimeUnit.SECONDS.toNanos(30); // an answer, behind which only faults came (BAR-53)
  private static volatile long current = TimeUnit.SECONDS.toNanos(10); // so old is what came of the last question (BAR-67)

  private final WeakReference<Object> client;
  private final Function<Object, ? extends Collection<?>> asking;
  private final Function<Object, ?> looking;
  private final SourceKey whose;
  private volatile Consumer<Object> meeting = client -> {};
  private volatile String unmet = ""; // why the connections that the client holds could not be looked at
  private volatile Object looked; // how the client was when its last answer was asked for
  private volatile Map<String, ServerEngine> servers = Map.of(); // of the last answer that was not empty
  private volatile long givenAt = Ticks.LONG_AGO;
  private volatile long askedAt = Ticks.LONG_AGO;
  private volatile long toldAt = Ticks.LONG_AGO; // when the last question was asked that came to anything
  private volatile String words = "nobody has asked it yet";
  // Under the lock of this:
  private final List<PendingWait> parked = new ArrayList<>();
  private boolean isAsking;
  private long failedAt = Ticks.LONG_AGO; // when an answer that was known could not be had again

  /**
   * A question for servers.
   *
   * @param client whose servers they are: held weakly, and asked no more where it is gone
   * @param asking what names them; may throw, and may block, on a thread of Antipode's own
   * @param looking what decides where the client leads, at hand and without a question; equal as long as it leads where it
   *     led. Where it changes, the answer does not stand any more, and is asked for anew (BAR-52)
   * @param whose for whom it names them
   */
  public Discovery(
      RegionStore store,
      String name,
      Object client,
      Function<Object, ? extends Collection<?>> asking,
      Function<Object, ?> looking,
      SourceKey whose) {
    super(store, name, null);
    this.client = new WeakReference<>(client);
    this.asking = asking;
    this.looking = looking;
    this.whose = whose;
    this.looked = looking.apply(client);
  }

  /** A question whose answer does not depend on what the client is. */
  public Discovery(
      RegionStore store,
      String name,
      Object client,
      Function<Object, ? extends Collection<?>> asking,
      SourceKey whose) {
    this(store, name, client, asking, same -> null, whose);
  }

  @Override
  public Discovery watchHeld(Consumer<Object> meeting) {
    this.meeting = meeting;
    meetHeld();
    return this;
  }

  // What the store asks

  /**
   * Let the servers join to which the connections lead that the client holds (BAR-68). Where that fails nobody knows where they
   * lead, as with a question that fails.
   */
  public void meetHeld() {
    Object known = client.get();
    if (known == null) {
      return;
    }
    try {
      meeting.accept(known);
      unmet = "";
    } catch (RuntimeException | LinkageError error) { // a pool's own fault, or another version of it
      unmet = "the connections that its client holds cannot be looked at: " + error;
    }
  }

  /** Return whose servers it names. */
  public SourceKey whose() {
    return whose;
  }

  /** Return whether nobody can need its answer any more. */
  public boolean isOver() {
    return client.get() == null;
  }

  @Override
  public Map<String, ServerEngine> named() {
    return servers;
  }

  /** Takes the servers that it names from now on. The store calls this, before its generation says that they are others. */
  public final void named(Map<String, ServerEngine> now) {
    servers = now;
  }

  /** Return whether its answer stands. */
  public boolean isKnown(long now) {
    if (!unmet.isEmpty()) {
      return false;
    }
    if (givenAt == Ticks.LONG_AGO || whose.isOnce()) {
      return givenAt != Ticks.LONG_AGO && !isChanged();
    }
    return now - givenAt <= stands && now - toldAt <= current;
  }

  /** Return whether the client is not any more what it was when its servers were asked for. */
  private boolean isChanged() {
    Object known = client.get();
    return known != null && !Objects.equals(looking.apply(known), looked);
  }

  /** Return whether it is to be asked again. */
  public boolean isDue(long now) {
    return now - askedAt > refresh && !(whose.isOnce() && givenAt != Ticks.LONG_AGO);
  }

  @Override
  String down() {
    return words;
  }

  // Answers

  @Override
  public boolean found(Collection<?> targets) {
    if (targets.isEmpty()) {
      return false;
    }
    store().take(this, targets, whose.isOnce());
    given(Ticks.now());
    return true;
  }

  /** The servers of an answer to a question of then are named: from now on it stands. */
  private void given(long questionAt) {
    words = "what was said of them is too old"; // where this stands no more (BAR-67)
    givenAt = Ticks.now();
    toldAt = questionAt;
    goOn();
  }

  /** Whoever waits here waits at each of the known servers. */
  private void goOn() {
    List<WaitGroup> over = new ArrayList<>();
    synchronized (this) {
      for (PendingWait need : parked) {
        if (divide(need)) {
          over.add(need.group);
        }
      }
      parked.clear();
    }
    WaitGroup.releaseAll(over);
  }

  private boolean divide(PendingWait need) {
    need.group.divide(need, servers.values()).forEach(each -> each.server.park(each));
    return need.group.settle(need, Visibility.VISIBLE);
  }

  /** Asks now, on this thread, and throws what the question throws. */
  public void ask() {
    long questionAt = Ticks.now();
    askedAt = questionAt;
    Object known = client.get();
    if (known == null) {
      given(questionAt); // nobody waits for what it would have said
      return;
    }
    meetHeld();
    if (!unmet.isEmpty()) {
      missed(unmet);
      return;
    }
    Object now = looking.apply(known);
    Collection<?> targets = asking.apply(known);
    if (targets.isEmpty()) {
      missed("it names no server");
      return;
    }
    store().take(this, targets, false);
    looked = now; // not before: else the servers of the answer before would stand for a client that is led elsewhere
    given(questionAt);
  }

  /** Has a thread ask now, unless one does; never waits. */
  public void refresh() {
    synchronized (this) {
      if (isAsking) {
        return;
      }
      isAsking = true;
      askedAt = Ticks.now();
    }
    try {
      EngineThreads.start(this::run, "antipode-servers-" + store().name());
    } catch (Throwable error) { // no thread is to be had: the next one who waits tries again
      words = "no thread could be started to ask for them (" + error + ")";
      synchronized (this) {
        isAsking = false;
      }
      settleAll(Visibility.unproven(words, UnprovenKind.OWN_FAULT));
    }
  }

  private void run() {
    for (long pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LAST_PAUSE)) {
      try {
        askOrMiss();
      } catch (Throwable error) { // our own fault; it is asked again while somebody waits (BAR-61)
        words = "asking for them failed";
      }
      synchronized (this) {
        if (parked.isEmpty()) {
          isAsking = false;
          return;
        }
      }
      LockSupport.parkNanos(this, pause);
    }
  }

  private void askOrMiss() {
    try {
      ask();
    } catch (RuntimeException | Error error) { // the application's own code
      missed(error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage());
    }
  }

  /** The last answer stands for a while; where it does not any more, nobody is kept waiting for another (BAR-53). */
  private void missed(String why) {
    words = why;
    toldAt = askedAt;
    long now = Ticks.now();
    if (!whose.isOnce() && isKnown(now)) {
      goOn();
    } else if (!whose.isOnce() && givenAt != Ticks.LONG_AGO) {
      synchronized (this) {
        failedAt = now;
      }
      settleAll(missing());
    }
    if (!whose.isOnce()) {
      Logs.warn("AP207", "servers " + store().name(), store().name() + ": " + address() + ": " + why);
    }
  }

  private Visibility missing() {
    return Visibility.unproven("its servers are not known: " + words, kind());
  }

  /** Return what a store without this answer is unproven for. */
  UnprovenKind kind() {
    return whose.isOnce() && unmet.isEmpty() ? UnprovenKind.NOT_OPENED : UnprovenKind.DISCOVERY;
  }

  private void settleAll(Visibility answer) {
    List<WaitGroup> over = new ArrayList<>();
    synchronized (this) {
      for (PendingWait need : parked) {
        if (need.group.settle(need, answer)) {
          over.add(need.group);
        }
      }
      parked.clear();
    }
    WaitGroup.releaseAll(over);
  }

  // Who waits

  @Override
  boolean park(PendingWait need) {
    boolean isOver;
    synchronized (this) {
      long now = Ticks.now();
      if (isKnown(now)) { // meanwhile
        return divide(need);
      }
      if (need.group.follows || now - failedAt < LAST_PAUSE) {
        isOver = need.group.settle(need, missing());
      } else if (!hasTimer()) {
        isOver = need.group.settle(need, Visibility.unproven(words, UnprovenKind.OWN_FAULT));
      } else {
        need.parked = true;
        parked.add(need);
        isOver = false;
      }
    }
    refresh();
    return isOver;
  }

  /** Return whether deadlines are kept; else the words say why not. */
  private boolean hasTimer() {
    try {
      EngineThreads.ensureTimer();
      return true;
    } catch (OutOfMemoryError error) { // no wait begins without (BAR-61)
      words = "no thread could be started to keep deadlines (" + error.getMessage() + ")";
      return false;
    }
  }

  @Override
  synchronized void giveUp(PendingWait need) {
    parked.remove(need);
    need.group.settle(need, missing());
  }

  @Override
  public void retire() {
    settleAll(missing());
  }

  /** Sets how often servers are asked for, and for how long an answer stands, in nanoseconds (tests). */
  public static void hurry(long refreshNanos, long standsNanos) {
    refresh = refreshNanos;
    stands = standsNanos;
  }

  /** Sets how old what came of the last question may be, in nanoseconds (tests). */
  public static void current(long nanos) {
    current = nanos;
  }
}
