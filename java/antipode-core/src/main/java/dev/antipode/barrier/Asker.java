package dev.antipode.barrier;

import dev.antipode.Logs;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import dev.antipode.telemetry.Telemetry;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The one thread that asks a server, however many barriers wait (single flight, BAR-38), and only while somebody waits and
 * ten seconds longer. It is woken by the server's push where the store has one, by a new need, or by its poll timer.
 */
final class Asker {
  /** The poll interval doubles up to so many times the shortest. */
  private static final int SAFETY_NET = 10;

  /** By so much it grows where nobody waits: when a write was seen is known to within a quarter, or the longest interval. */
  private static final double UNHURRIED = 1.25;

  private static final long RETRY_FIRST = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long WAIT_SLICE = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long BREATH = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long NAP = TimeUnit.SECONDS.toNanos(1);
  private static final long AT_FAULT = RETRY_FIRST; // until the next question, where our own code failed

  private enum Woken {
    BY_TIME,
    BY_PUSH,
    BY_POKE
  }

  /** What came of a question: the data were replaced while it was on its way, or the server has moved, or not. */
  private enum Answered {
    OVERTAKEN,
    MOVED,
    STILL
  }

  private final ServerInside inside;
  private final Server server;
  private Thread thread; // guarded by the lock
  private Pace pace = new Pace(); // the thread's own

  // The thread's channel; written by the thread alone, but for the flags.
  private volatile boolean poked;
  private volatile boolean pushed;
  private volatile Exception brokenBy;
  private Watch watch;
  private boolean watchable = true;
  private long connectedAt = Ticks.LONG_AGO; // the thread's own: since when the shim's connection may be open
  private long questionTime; // by a question of late and its connection
  private volatile long questions; // written by the thread alone

  Asker(ServerInside inside, Server server) {
    this.inside = inside;
    this.server = server;
  }

  /** The thread, or null; under the lock. */
  Thread thread() {
    return thread;
  }

  /** How many questions the server was asked. */
  long questions() {
    return questions;
  }

  /** Starts the thread where there is none; under the lock. */
  void ensureRunning() {
    if (thread == null) {
      poked = false;
      thread = start(this::run, "antipode-" + inside.store.name() + "-" + inside.address);
    }
  }

  /** Starts a daemon thread that keeps nothing of its starter's: no class loader, no inherited thread-locals. */
  static Thread start(Runnable work, String name) {
    Thread thread = new Thread(null, work, name, 0, false);
    thread.setDaemon(true);
    thread.setContextClassLoader(Asker.class.getClassLoader());
    thread.start();
    return thread;
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
    pace = new Pace();
    while (true) {
      if (isIdle()) {
        closeChannel(); // not under the lock: a shim's close may wait for who is calling back
        if (ends()) {
          return;
        }
      }
      try {
        turn();
      } catch (Throwable error) { // our own fault, and not the server's silence: whoever waits is told so (BAR-61)
        Logs.error("AP209", "the thread that asks " + inside.address + " failed", error);
        refused(error, UnprovenKind.OWN_FAULT);
        sleepQuietly(AT_FAULT);
      }
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

  private boolean isWanted() {
    inside.lock.lock();
    try {
      return inside.waiters.wanted();
    } finally {
      inside.lock.unlock();
    }
  }

  /** Sleeps until there is a reason to ask the server, and asks it once. */
  private void turn() {
    long now = Ticks.now();
    Shim shim = inside.store.shim();
    long ownPace = shim.ownPace().toNanos();
    long shortest = Math.max(Math.max(EngineSettings.now().poll(), ownPace), BREATH);
    boolean wanted = isWanted();
    long due;
    if (inside.reach.isDown()) {
      due = inside.reach.failedAt() + pace.retry;
    } else if (wanted && pace.blocks && shim.capabilities().blockingWait()) {
      due = pace.askedAt + BREATH; // the shim itself waits
    } else if (wanted) {
      due = pace.askedAt + jittered(Math.max(pace.interval, shortest));
    } else if (watch != null && EngineSettings.now().freePathTtl() > 0) {
      due = inside.proofs.answeredAt() + Math.max(EngineSettings.now().freePathTtl() / 2, shortest);
    } else {
      due = now + NAP;
    }
    Woken woken = sleep(Math.min(due - now, NAP));
    Exception broken = brokenBy;
    if (broken != null) { // a broken channel is a server that has to be asked anew
      brokenBy = null;
      failed(broken, Ticks.now());
    }
    now = Ticks.now();
    if (now < due && (woken == Woken.BY_TIME || inside.reach.isDown())) {
      return;
    }
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
    if (woken == Woken.BY_PUSH && (!wanted || (unhurried && !looks && now < due))) {
      return; // whoever comes next asks anew
    }
    if (woken == Woken.BY_POKE && now - pace.askedAt < BREATH) {
      // Bounded even while barriers keep arriving: those of one breath are asked for together.
      sleepQuietly(pace.askedAt + BREATH - now);
    }
    if (woken == Woken.BY_POKE && unhurried) {
      pace.interval = shortest; // of what has just come, it is known the sooner
    }
    pace.askedAt = Ticks.now();
    boolean moved = round(wanted);
    pace.blocks = moved || poked || Ticks.now() - pace.askedAt > WAIT_SLICE / 2;
    if (inside.reach.isDown()) {
      pace.retry = Math.min(pace.retry * 2, Reachability.RETRY_MOST);
      pace.interval = shortest;
    } else {
      pace.retry = RETRY_FIRST;
      boolean steady = (moved && !unhurried) || ownPace > 0;
      long longer = (long) (Math.max(pace.interval, shortest) * (unhurried ? UNHURRIED : 2));
      pace.interval = steady ? shortest : Math.min(longer, shortest * SAFETY_NET);
    }
  }

  private static long jittered(long interval) {
    return (long) (interval * ThreadLocalRandom.current().nextDouble(0.9, 1.1));
  }

  /** Sleeps until the time is over, the server pushed, or somebody new waits. */
  private Woken sleep(long nanos) {
    long until = Ticks.now() + nanos;
    while (!poked && !pushed && brokenBy == null) {
      long left = until - Ticks.now();
      if (left <= 0) {
        break;
      }
      LockSupport.parkNanos(this, left);
      Thread.interrupted(); // nobody has a reason to interrupt it: a shim's leftover
    }
    boolean wasPoked = poked;
    poked = false; // only now: a poke in between is seen by the question that follows
    if (pushed) {
      pushed = false;
      return Woken.BY_PUSH;
    }
    return wasPoked ? Woken.BY_POKE : Woken.BY_TIME;
  }

  private void sleepQuietly(long nanos) {
    long until = Ticks.now() + nanos;
    for (long left = nanos; left > 0; left = until - Ticks.now()) {
      LockSupport.parkNanos(this, left);
      Thread.interrupted();
    }
  }

  /** One question; true if the server has moved. One whose answer was overtaken is asked again, once (BAR-33). */
  private boolean round(boolean wanted) {
    Answered answered = ask(wanted);
    return (answered == Answered.OVERTAKEN ? ask(wanted) : answered) == Answered.MOVED;
  }

  private Answered ask(boolean wanted) {
    long beganAt = Ticks.now();
    long askedAt = beganAt;
    List<WriteId> ids;
    boolean looks;
    boolean hurried;
    inside.lock.lock();
    try {
      inside.waiters.inTurns = !inside.store.shim().ownPace().isZero();
      ids = inside.waiters.choose(askedAt, inside.wantedAt);
      looks = inside.waiters.hasLooks();
      hurried = inside.hurried;
    } finally {
      inside.lock.unlock();
    }
    Proofs before = inside.proofs.now();
    Shim shim = inside.store.shim();
    questions = questions + 1;
    List<Visibility> answers;
    try {
      if (connectedAt == Ticks.LONG_AGO) {
        connectedAt = askedAt;
      } else if (shim.reconnects() && askedAt - connectedAt >= Math.max(EngineSettings.now().reconnect(), 10 * questionTime)) {
        closeChannel(); // the address may lead to another server by now (BAR-55)
        connectedAt = askedAt;
      }
      if (watch == null && watchable && hurried && shim.capabilities().push()) {
        openWatch(shim);
        askedAt = Ticks.now(); // it has just answered
      }
      inside.proofs.begin();
      answers =
          !ids.isEmpty() && shim.capabilities().blockingWait() && !looks
              ? shim.await(ids, server, Duration.ofNanos(WAIT_SLICE))
              : shim.visible(ids, server);
      if (answers.size() != ids.size()) {
        throw new IllegalStateException(
            shim.kind() + ": " + answers.size() + " answers to " + ids.size() + " questions");
      }
    } catch (Exception error) {
      boolean isSilence = error instanceof InterruptedException || shim.unreachable(error);
      if (isSilence && !OwnFault.is(error)) {
        failed(error, askedAt);
      } else {
        refused(error, isSilence ? UnprovenKind.OWN_FAULT : shim.kindOf(error));
      }
      return Answered.STILL;
    }
    inside.reach.answered();
    if (shim.ownPace().isZero()) { // such a shim counts its questions by itself
      Telemetry.request(inside.store.name(), wanted ? "wait" : "probe");
    }
    questionTime = Math.max(Ticks.now() - beganAt, questionTime / 2);
    Proof proof = inside.proofs.answered();
    if (proof == null) {
      return Answered.OVERTAKEN;
    }
    Proofs after = inside.proofs.now();
    // An answer that proves no position is none of an earlier one: what that one proved is as old as it.
    Map<String, Long> applied = after.askedAt() == proof.askedAt() ? after.applied() : Map.of();
    List<Group> released;
    inside.lock.lock();
    try {
      long now = Ticks.now();
      released = inside.waiters.answer(ids, answers, applied, now, proof, after.epoch(), inside.lag(now));
    } finally {
      inside.lock.unlock();
    }
    Group.releaseAll(released);
    boolean moved = !released.isEmpty()
        || !before.epoch().equals(after.epoch())
        || !Objects.equals(before.current(), after.current());
    return moved ? Answered.MOVED : Answered.STILL;
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
    List<Group> released;
    inside.lock.lock();
    try {
      released = inside.waiters.answerAll(answer);
      inside.waiters.forgetProbes();
    } finally {
      inside.lock.unlock();
    }
    Group.releaseAll(released);
  }

  /** The server did not answer: proofs go, and after {@code replica_out_after} it is left out of every pass. */
  private void failed(Throwable error, long askedAt) {
    closeChannel();
    long now = Ticks.now();
    inside.reach.failed(askedAt, now, words(error));
    Telemetry.request(inside.store.name(), "probe");
    if (!inside.reach.isOut(now)) {
      return;
    }
    List<Group> released;
    inside.lock.lock();
    try {
      released = inside.waiters.leaveOut();
    } finally {
      inside.lock.unlock();
    }
    Group.releaseAll(released);
  }

  private static String words(Throwable error) {
    String message = error.getMessage();
    return message == null || message.isEmpty()
        ? error.getClass().getSimpleName()
        : error.getClass().getSimpleName() + ": " + message;
  }

  private void closeChannel() {
    Watch open = watch;
    watch = null;
    inside.proofs.reset(); // first: what was proved goes whatever closing throws
    try {
      if (open != null) {
        open.close();
      }
      inside.store.shim().close(server);
    } catch (RuntimeException error) { // a shim's defect; the thread has to go on
      Logs.error("AP209", "giving up the connection to " + inside.address + " failed", error);
    }
    connectedAt = Ticks.LONG_AGO;
  }
}
