package dev.antipode.internal.engine;

import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Visibility;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;

/**
 * The needs of one barrier. It is over when every need is settled, or when the barrier gives up.
 *
 * <p>How it ends (BAR-63; the steps are those of {@code spec/tla/Reopen.tla}, the ages those of {@code Barrier.tla}):
 *
 * <ol>
 *   <li>An answer settles a need under the generation that its server was in when the question was asked, with the time of
 *       the asking. Both are written under the lock of this, and so is how many needs are open.
 *   <li>Whoever settles the last one notes <em>the moment</em>: when its question was asked. Then, with no lock of a server
 *       held, he copies all proofs in one step and compares each with its server's generation. Generations only grow, so what
 *       is equal later was equal at the copy: that is the instant at which all stood.
 *   <li>What does not stand is opened again and asked for at once. Where only its age was too great the moment stays, so that
 *       one more round is enough however slow the link is; where the data may be others it is another moment.
 *   <li>One test-and-set decides who releases. The deadline looks once more itself: what does not stand then is not visible.
 * </ol>
 */
final class WaitGroup {
  /** A need with the proof that it had when all proofs were copied. */
  private record ProvedWait(PendingWait need, Proof proof) {}

  /** Nanoseconds; zero looks without waiting. */
  final long timeout;

  final long since;
  volatile List<PendingWait> needs = new ArrayList<>(2); // replaced, where it grows behind the parking

  /** The barrier was cancelled or interrupted: nobody goes on asking for it. */
  volatile boolean cancelled;

  /** It only records when the writes are seen: nobody waits for them (dry-run). */
  final boolean follows;

  /** Whether a server has left the store: a wait there ends then, and its barrier names them anew (BAR-65). Null: it waits on. */
  Predicate<ServerEngine> hasLost;

  /** It ended since one has left where it waited. */
  private volatile boolean isOutdated;

  /** All places for waiting were taken. */
  boolean overloaded;

  /** Where several servers are judged, each shows its entries once more behind the last of them (BAR-64). */
  boolean looksTwice;

  /** Its only need was settled while it waited: there is nothing that it has to stand together with. */
  private volatile boolean isAlone;

  private volatile boolean hasWaited;
  private final Runnable onRelease;
  // Under the lock of this:
  private boolean isOver;
  private long moment = Ticks.LONG_AGO;
  private int left = 1; // one for the barrier itself, until all is parked

  /** {@code onRelease} is called once, by a thread of the engine, without any lock. */
  WaitGroup(long timeout, Runnable onRelease) {
    this(timeout, onRelease, false);
  }

  /** The same; {@code follows}: nobody waits for it. */
  WaitGroup(long timeout, Runnable onRelease, boolean follows) {
    this(timeout, Ticks.now(), onRelease, follows);
  }

  /** The same; {@code since}: its barrier began to wait then, {@link Ticks}. */
  WaitGroup(long timeout, long since, Runnable onRelease, boolean follows) {
    this.timeout = timeout;
    this.since = since;
    this.onRelease = onRelease;
    this.follows = follows;
  }

  /** One more need; to be parked at its server. */
  synchronized PendingWait add(WriteId writeId, ServerEngine server) {
    PendingWait need = new PendingWait(writeId, server, this);
    needs.add(need);
    left++;
    return need;
  }

  /** The needs that stand for this one at the servers that it waited to know; none where its barrier is over. */
  synchronized List<PendingWait> divide(PendingWait need, Collection<ServerEngine> servers) {
    if (isOver || need.isDone()) {
      return List.of();
    }
    need.divided = true;
    List<PendingWait> found = servers.stream().map(server -> new PendingWait(need.writeId, server, this)).toList();
    List<PendingWait> all = new ArrayList<>(needs);
    all.addAll(found);
    needs = all;
    left += found.size();
    return found;
  }

  /** End the barrier; return what is not settled, or does not stand. Nothing is added or settled any more. */
  synchronized List<PendingWait> end() {
    boolean compares = (endOnce() || isOutdated) && !follows;
    long since = compares && left == 0 ? oldest() : Ticks.LONG_AGO;
    List<PendingWait> open = new ArrayList<>(0);
    for (PendingWait need : needs) {
      if (!need.isDone()) {
        open.add(need);
      } else if (compares && need.needsProof() && !need.stands(need.proof, since)) {
        need.answer = Visibility.notYet("it was there, and may be gone again");
        open.add(need);
      }
    }
    return open;
  }

  /** Return whether it ended since one has left where it waited. */
  boolean isOutdated() {
    return isOutdated;
  }

  /** Return the servers that have not settled everything. */
  List<ServerEngine> open() {
    return needs.stream().filter(need -> !need.isDone()).map(need -> need.server).distinct().toList();
  }

  /** End it where a server has left at which it waits; true for the first who ends it: he wakes the barrier. */
  boolean endWithout(ServerEngine server) {
    if (hasLost == null || !hasLost.test(server)) {
      return false;
    }
    synchronized (this) {
      isOutdated |= !isOver;
      return endOnce();
    }
  }

  /** Everything is parked; true if something is still to be waited for. */
  boolean parked() {
    boolean isLast;
    synchronized (this) {
      isLast = --left == 0;
    }
    hasWaited = !(isLast && conclude());
    return hasWaited;
  }

  /** Return whether not everything was settled when it had been parked. */
  boolean hasWaited() {
    return hasWaited;
  }

  /** The same without a proof: no server's answer, or one that makes nothing visible. */
  boolean settle(PendingWait need, Visibility answer) {
    return settle(need, answer, null);
  }

  /**
   * A need is over, one way or another; true where it was the last one: then somebody is to {@link #releaseAll}. With the lock
   * of the need's server held.
   *
   * @param proof by which question the answer came; null where it makes nothing visible
   */
  synchronized boolean settle(PendingWait need, Visibility answer, Proof proof) {
    if (need.isDone()) {
      return false;
    }
    boolean isLast = --left == 0;
    boolean isLate = isOver && answer != null && answer.isVisible(); // the barrier has looked at what it had
    if (!isLate) {
      note(need, answer, proof);
    }
    need.finish();
    if (isLast && needs.size() == 1) { // its own answer is the moment
      isAlone = true;
      return endOnce();
    }
    return isLast && !isLate;
  }

  private void note(PendingWait need, Visibility answer, Proof proof) {
    if (answer != null) {
      need.answer = answer;
    }
    long now = Ticks.now();
    need.seenAt = now;
    Proof by = proof != null ? proof : new Proof(now, 0, false);
    if (!need.repeats || by.generation() != need.proof.generation()) {
      moment = looksTwice || by.isKept() ? now : by.askedAt();
    }
    need.proof = by;
  }

  /**
   * Return whether no need is open and all proofs stand; ask again at once for what does not (BAR-63). The caller holds no lock
   * of a server, and releases the barrier where this is true: once.
   */
  private boolean conclude() {
    boolean mayBeOver = true;
    while (mayBeOver) {
      long since;
      List<ProvedWait> shown;
      synchronized (this) {
        if (left > 0 || isOver) {
          return false;
        }
        if (follows) { // nobody relies on a record
          return endOnce();
        }
        since = oldest();
        shown = needs.stream().filter(PendingWait::needsProof).map(need -> new ProvedWait(need, need.proof)).toList();
      }
      List<ProvedWait> stale = shown.stream().filter(each -> !each.need.stands(each.proof, since)).toList();
      if (stale.isEmpty()) {
        synchronized (this) { // another thread may have opened one that was reset since
          return left == 0 && endOnce();
        }
      }
      mayBeOver = false;
      for (ProvedWait each : stale) {
        if (open(each, since)) {
          mayBeOver |= each.need.server.park(each.need);
        }
      }
      if (isAlone) { // a lone need that was settled at once has ended the barrier
        return mayBeOver;
      }
    }
    return false;
  }

  /** Return when a question must have been asked, at the earliest, for its answer to count at the moment. */
  private long oldest() {
    boolean isSeveral =
        looksTwice && needs.stream().filter(need -> !need.divided).map(need -> need.server).distinct().count() > 1;
    return isSeveral ? moment : moment - EngineSettings.now().freePathTtl();
  }

  /** Return true for the first who ends the barrier; under the lock of this. */
  private boolean endOnce() {
    boolean isFirst = !isOver;
    isOver = true;
    return isFirst;
  }

  /** Open a need whose proof does not stand; false where somebody else did, or the barrier is over. */
  private synchronized boolean open(ProvedWait shown, long since) {
    if (isOver || !shown.need.isDone() || shown.need.proof != shown.proof) {
      return false;
    }
    shown.need.open(since);
    left++;
    return true;
  }

  /** Wakes the barrier. */
  void release() {
    onRelease.run();
  }

  /** Wakes each barrier whose proofs stand; then throws what the first of them threw. The caller holds no lock of a server. */
  static void releaseAll(List<WaitGroup> groups) {
    releaseEach(groups, group -> group.isAlone || group.conclude());
  }

  /** Wakes each barrier that waits at a server and has lost it; throws likewise. */
  static void releaseWithout(ServerEngine server, Collection<WaitGroup> groups) {
    releaseEach(groups, group -> group.endWithout(server));
  }

  private static void releaseEach(Collection<WaitGroup> groups, Predicate<WaitGroup> isOver) {
    Throwable first = null;
    for (WaitGroup group : groups) {
      try {
        if (isOver.test(group)) {
          group.release();
        }
      } catch (RuntimeException | Error error) { // those behind it would wait for nobody
        first = first == null ? error : first;
      }
    }
    if (first instanceof Error error) {
      throw error;
    }
    if (first != null) {
      throw (RuntimeException) first;
    }
  }
}
