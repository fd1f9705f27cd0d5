package dev.antipode.internal.engine;

import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.observer.Observers;
import dev.antipode.shim.Logs;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The one thread that asks a server, however many barriers wait (single flight, BAR-38), and only while somebody waits and
 * ten seconds longer. It is woken by the server's push where the store has one, by a new need, or by its poll timer.
 */
final class Asker {
  private static final long WAIT_SLICE = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long BREATH = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long NAP = TimeUnit.SECONDS.toNanos(1);
  private static final long AT_FAULT = Pace.RETRY_FIRST; // until the next question, where our own code failed

  /** What ended a sleep: somebody new waits, or the server pushed, or neither. */
  private record WakeReason(boolean isPoked, boolean isPushed) {}

  /** What came of a question: the data were replaced while it was on its way, or the server has moved, or not. */
  private enum QuestionOutcome { OVERTAKEN, MOVED, STILL }

  private final ServerInside inside;
  private final Server server;
  private Thread thread; // guarded by the lock
  private Pace pace; // the thread's own

  // The thread's channel; written by the thread alone, but for the flags.
  private volatile boolean poked;
  private volatile boolean pushed;
  private volatile Exception brokenBy;
  private Watch watch;
  private boolean watchable = true;
  private final Renewal renewal; // the thread's own
  private volatile long questions; // written by the thread alone
  private volatile int knownUnder = -1; // the generation of the store's servers when it was last looked if this is one of them

  Asker(ServerInside inside, Server server) {
    this.inside = inside;
    this.server = server;
    this.pace = new Pace(inside.proofs.growth());
    this.renewal = new Renewal(server, this::closeChannel);
  }

  /** The thread, or null; under the lock. */
  Thread thread() {
    return thread;
  }

  /** The connection by which the server is asked, and the next one (tests). */
  Renewal renewal() {
    return renewal;
  }

  /** How many questions the server was asked. */
  long questions() {
    return questions;
  }

  /**
   * Starts the thread where there is none, and that of deadlines, so that no wait begins without; under the lock.
   *
   * @throws OutOfMemoryError where the process may have no more threads
   */
  void ensureRunning() {
    EngineThreads.ensureTimer();
    if (thread == null) {
      poked = false;
      thread = EngineThreads.start(this::run, "antipode-" + inside.store.name() + "-" + inside.address);
    }
  }

  /** Somebody new waits here, who may not have looked whether this server has left (BAR-65); under the lock. */
  void lookAgain() {
    knownUnder = -1;
  }

  /** Makes the thread ask now; from any thread. */
  void poke() {
    if (!poked) {
      poked = true;
      wake();
    }
  }

  /** Whether it is to ask anew. */
  boolean isPoked() {
    return poked;
  }

  /** The store's push: something was applied; from any thread. */
  void changed() {
    inside.proofs.growth().notePush();
    pushed = true;
    wake();
  }

  /** The push channel broke off; from any thread. */
  void broken(Exception error) {
    brokenBy = error;
    wake();
  }

  private void wake() {
    Thread asking = thread; // a stale one is woken in vain: the one that follows looks at the flags first
    if (asking != null) {
      LockSupport.unpark(asking);
    }
  }

  private void run() {
    pace = new Pace(inside.proofs.growth());
    while (true) {
      try {
        if (isIdle()) {
          closeChannel(); // not under the lock: a shim's close may wait for who is calling back
          if (ends()) {
            return;
          }
        }
        turn();
      } catch (Throwable error) { // our own fault, and not the server's silence (BAR-61)
        tellFault(error);
        sleepQuietly(AT_FAULT);
      }
    }
  }

  /** Tells who waits here that this process is in trouble; throws nothing: the thread goes on when that is over. */
  private void tellFault(Throwable error) {
    try {
      refused(error, UnprovenKind.OWN_FAULT);
      Logs.error("AP209", "the thread that asks " + inside.address + " failed", error);
    } catch (Throwable again) {
      return; // even that takes memory: who waits is told at the next turn
    }
  }

  private boolean isIdle() {
    inside.lock.lock();
    try {
      return inside.waiters.live() == 0 && Ticks.now() - inside.wantedAt > ServerInside.linger;
    } finally {
      inside.lock.unlock();
    }
  }

  /** Ends the thread if it is still idle; under the lock, so that a need parked now starts another one. */
  private boolean ends() {
    inside.lock.lock();
    try {
      if (inside.waiters.live() != 0 || Ticks.now() - inside.wantedAt <= ServerInside.linger) {
        return false;
      }
      thread = null;
      inside.hurried = false;
      inside.waiters.forgetProbes();
      inside.waiters.forgetUnknown();
      return true;
    } finally {
      inside.lock.unlock();
    }
  }

  /** Sleeps until there is a reason to ask the server, and asks it once. */
  private void turn() {
    lookWhetherItLeft();
    long ownPace = inside.store.shim().ownPace().toNanos();
    long shortest = Math.max(Math.max(EngineSettings.now().poll(), ownPace), BREATH);
    long due = due(shortest);
    WakeReason woken = sleep(Math.min(due - Ticks.now(), NAP));
    Exception broken = brokenBy;
    if (broken != null) { // a broken channel is a server that has to be asked anew
      brokenBy = null;
      silent(broken, Ticks.now());
    }
    boolean wanted;
    boolean unhurried;
    boolean looks;
    inside.lock.lock();
    try {
      wanted = inside.waiters.wanted();
      unhurried = inside.waiters.onlyFollows();
      looks = inside.waiters.hasLooks();
    } finally {
      inside.lock.unlock();
    }
    if (woken.isPushed && wanted && (looks || !unhurried)) { // else whoever comes next asks anew
      pace.noteNews();
      due = Math.min(due, due(shortest));
    }
    long now = Ticks.now();
    if (now < due && (!woken.isPoked || inside.reach.isDown())) {
      return;
    }
    if (woken.isPoked && now - pace.askedAt() < BREATH) {
      // Bounded even while barriers keep arriving: those of one breath are asked for together.
      sleepQuietly(pace.askedAt() + BREATH - now);
    }
    if (woken.isPoked) {
      pace.hurry(unhurried);
    }
    pace.begin(Ticks.now(), now >= due && !woken.isPoked);
    poked = false; // whoever has come by now is among those who are asked for
    boolean moved = round(wanted);
    pace.blocks = moved || poked || Ticks.now() - pace.askedAt() > WAIT_SLICE / 2;
    pace.end(shortest, inside.reach.isDown(), (moved && !unhurried) || ownPace > 0, unhurried);
  }

  /** Wakes the barriers that wait here where this server has left the store, in their reach (BAR-65). */
  private void lookWhetherItLeft() {
    boolean isAwaited;
    inside.lock.lock();
    try {
      isAwaited = inside.waiters.live() > 0 && !inside.waiters.onlyFollows();
    } finally {
      inside.lock.unlock();
    }
    if (!isAwaited) {
      return;
    }
    int generation = inside.store.lookForLeaving(Ticks.now()); // first: what changes meanwhile shows
    if (generation == knownUnder) {
      return;
    }
    knownUnder = generation; // before it is looked who waits
    if (inside.store.isNamed(server, true) && inside.store.isNamed(server, false)) {
      return;
    }
    Set<WaitGroup> changing;
    inside.lock.lock();
    try {
      changing = inside.waiters.changing();
    } finally {
      inside.lock.unlock();
    }
    WaitGroup.releaseWithout((ServerEngine) server, changing);
  }

  /** Return when the server is to be asked, where nobody new comes before. */
  private long due(long shortest) {
    Proofs known = inside.proofs.now();
    boolean wanted;
    boolean unhurried;
    Long nearest;
    inside.lock.lock();
    try {
      wanted = inside.waiters.wanted();
      unhurried = inside.waiters.onlyFollows();
      nearest = inside.waiters.nearest(known.epoch());
    } finally {
      inside.lock.unlock();
    }
    if (inside.reach.isDown()) {
      return inside.reach.failedAt() + pace.retry();
    }
    if (wanted && !unhurried && pace.blocks && inside.store.shim().capabilities().blockingWait()) {
      return pace.askedAt() + BREATH; // the shim itself waits
    }
    if (wanted) {
      return pace.due(shortest, known, nearest);
    }
    if (watch != null && EngineSettings.now().freePathTtl() > 0) {
      return inside.proofs.answeredAt() + Math.max(EngineSettings.now().freePathTtl() / 2, shortest);
    }
    return Ticks.now() + NAP;
  }

  /** Sleeps until the time is over, the server pushed, or somebody new waits. */
  private WakeReason sleep(long nanos) {
    long until = Ticks.now() + nanos;
    while (!poked && !pushed && brokenBy == null) {
      long left = until - Ticks.now();
      if (left <= 0) {
        break;
      }
      LockSupport.parkNanos(this, left);
      Thread.interrupted(); // nobody has a reason to interrupt it: a shim's leftover
    }
    WakeReason woken = new WakeReason(poked, pushed);
    if (woken.isPoked) { // what was not seen is not cleared: it may be set in this moment
      poked = false;
    }
    if (woken.isPushed) {
      pushed = false;
    }
    return woken;
  }

  private void sleepQuietly(long nanos) {
    long until = Ticks.now() + nanos;
    for (long left = nanos; left > 0; left = until - Ticks.now()) {
      LockSupport.parkNanos(this, left);
      Thread.interrupted();
    }
  }

  /** Sleeps in the shim's own wait: {@link Server#rest}. */
  void rest(long lead) {
    Proofs known = inside.proofs.now();
    Long nearest;
    inside.lock.lock();
    try {
      nearest = inside.waiters.nearest(known.epoch());
    } finally {
      inside.lock.unlock();
    }
    Long expected = inside.proofs.growth().expectedAt(known, nearest);
    while (expected != null && !poked && expected - lead > Ticks.now()) {
      LockSupport.parkNanos(this, expected - lead - Ticks.now());
      Thread.interrupted();
    }
  }

  /** One question; true if the server has moved. One whose answer was overtaken is asked again, once (BAR-33). */
  private boolean round(boolean wanted) {
    QuestionOutcome answered = ask(wanted);
    return (answered == QuestionOutcome.OVERTAKEN ? ask(wanted) : answered) == QuestionOutcome.MOVED;
  }

  private QuestionOutcome ask(boolean wanted) {
    long beganAt;
    long askedAt = Ticks.now();
    List<WriteId> ids;
    boolean waits; // else it only looks, or follows at leisure (REC-21)
    boolean hurried;
    inside.lock.lock();
    try {
      inside.waiters.inTurns = !inside.store.shim().ownPace().isZero();
      ids = inside.waiters.choose(askedAt, inside.wantedAt);
      waits = !ids.isEmpty() && !inside.waiters.hasLooks() && !inside.waiters.onlyFollows();
      hurried = inside.hurried;
    } finally {
      inside.lock.unlock();
    }
    Proofs before = inside.proofs.now();
    Shim shim = inside.store.shim();
    questions = questions + 1;
    List<Visibility> answers;
    try {
      renewal.beginQuestion(askedAt, EngineSettings.now().reconnect()); // the address may lead to another server by now
      beganAt = Ticks.now();
      askedAt = beganAt;
      if (watch == null && watchable && hurried && shim.capabilities().push()) {
        openWatch(shim);
        askedAt = Ticks.now(); // it has just answered
      }
      inside.proofs.begin();
      answers =
          waits && shim.capabilities().blockingWait()
              ? shim.await(ids, server, Duration.ofNanos(WAIT_SLICE))
              : shim.visible(ids, server);
      if (answers.size() != ids.size()) {
        throw new IllegalStateException(
            shim.kind() + ": " + answers.size() + " answers to " + ids.size() + " questions");
      }
    } catch (Exception error) {
      if (error instanceof InterruptedException || shim.unreachable(error)) {
        silent(error, askedAt);
      } else {
        refused(error, shim.kindOf(error));
      }
      return QuestionOutcome.STILL;
    }
    inside.reach.answered();
    if (shim.ownPace().isZero()) { // such a shim counts its questions by itself
      Observers.events().onServerAsked(inside.store.name(), wanted ? "wait" : "probe");
    }
    renewal.endQuestion(Ticks.now() - beganAt);
    Proof proof = inside.proofs.answered();
    if (proof == null) {
      return QuestionOutcome.OVERTAKEN;
    }
    Proofs after = inside.proofs.now();
    // An answer that proves no position is none of an earlier one: what that one proved is as old as it.
    Map<String, Long> applied = after.askedAt() == proof.askedAt() ? after.applied() : Map.of();
    List<WaitGroup> released;
    inside.lock.lock();
    try {
      long now = Ticks.now();
      released = inside.waiters.answer(ids, answers, applied, now, proof, after.epoch(), inside.lag(now));
    } finally {
      inside.lock.unlock();
    }
    WaitGroup.releaseAll(released);
    boolean moved = !released.isEmpty()
        || !before.epoch().equals(after.epoch())
        || !Objects.equals(before.current(), after.current());
    return moved ? QuestionOutcome.MOVED : QuestionOutcome.STILL;
  }

  private void openWatch(Shim shim) throws Exception {
    try {
      watch = shim.watch(server);
    } catch (UnsupportedOperationException error) {
      watchable = false;
      Logs.info(
          "AP515",
          "no-push " + inside.address,
          inside.address + " cannot push, so it is polled: " + error.getMessage());
    }
  }

  /** The server is there and does not answer the question: whoever waits is told so at once (BAR-13). */
  private void refused(Throwable error, UnprovenKind kind) {
    closeChannel();
    inside.reach.answered(); // in its way: it is asked at the pace of a poll, not of a server that is down
    Visibility answer = Visibility.unproven(words(error), kind);
    List<WaitGroup> released;
    inside.lock.lock();
    try {
      released = inside.waiters.answerAll(answer);
      inside.waiters.forgetProbes();
    } finally {
      inside.lock.unlock();
    }
    WaitGroup.releaseAll(released);
  }

  /** A question, or the push channel, ended without an answer: by the server's silence, or by a fault of our own (BAR-61). */
  private void silent(Exception error, long askedAt) {
    if (OwnFault.is(error)) {
      refused(error, UnprovenKind.OWN_FAULT);
    } else {
      failed(error, askedAt);
    }
  }

  /** The server did not answer: proofs go, and after {@code replica_out_after} it is left out of every pass. */
  private void failed(Throwable error, long askedAt) {
    closeChannel();
    long now = Ticks.now();
    inside.reach.failed(askedAt, now, words(error));
    Observers.events().onServerAsked(inside.store.name(), "probe");
    if (!inside.reach.isOut(now)) {
      return;
    }
    List<WaitGroup> released;
    inside.lock.lock();
    try {
      released = inside.waiters.leaveOut();
    } finally {
      inside.lock.unlock();
    }
    WaitGroup.releaseAll(released);
  }

  private static String words(Throwable error) {
    String message = error.getMessage();
    return message == null || message.isEmpty()
        ? error.getClass().getSimpleName()
        : error.getClass().getSimpleName() + ": " + message;
  }

  private void closeChannel() {
    closeChannel(null);
  }

  /** Close the channel and the connection; {@code following} takes its place (BAR-69). */
  private void closeChannel(AutoCloseable following) {
    Watch open = watch;
    watch = null;
    renewal.end();
    inside.proofs.reset(); // first: what was proved goes whatever closing throws
    try {
      closeAll(open);
    } catch (RuntimeException | Error error) { // a shim's defect, or our own fault; who waits is told all the same
      Logs.error("AP209", "giving up the connection to " + inside.address + " failed", error);
    }
    if (following != null) {
      server.session(following);
    }
  }

  private void closeAll(Watch open) {
    try {
      if (open != null) {
        open.close();
      }
    } finally {
      inside.store.shim().close(server); // whatever the channel throws: the last connection answers no more (BAR-69)
    }
  }
}
