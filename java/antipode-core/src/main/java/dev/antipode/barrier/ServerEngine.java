package dev.antipode.barrier;

import dev.antipode.Logs;
import dev.antipode.WriteId;
import dev.antipode.shim.RegisteredStore;
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
import java.util.concurrent.locks.ReentrantLock;

/**
 * One server of a store: what it has proved, and who waits for it (spec BAR, EPOCH).
 *
 * <p>One thread a server asks it, however many barriers wait (single flight), and only while somebody waits and ten
 * seconds longer. It is woken by the server's push where the store has one, by a new need, or by its poll timer.
 */
public final class ServerEngine implements Server {
  /** The poll interval doubles up to so many times the shortest. */
  private static final int SAFETY_NET = 10;

  private static final long RETRY_FIRST = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long RETRY_MOST = TimeUnit.MILLISECONDS.toNanos(500);
  private static final long WAIT_SLICE = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long BREATH = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long NAP = TimeUnit.SECONDS.toNanos(1);

  /** How long a server is asked on after the last barrier, in nanoseconds (BAR-37). */
  private static volatile long linger = TimeUnit.SECONDS.toNanos(10);

  private enum Woken {
    BY_TIME,
    BY_PUSH,
    BY_POKE
  }

  private final RegisteredStore store;
  private final String address;
  private final Object target;
  private final ReentrantLock lock = new ReentrantLock();
  private final Waiters waiters = new Waiters(linger);
  private Thread thread; // guarded by the lock
  private long wantedAt = Ticks.LONG_AGO; // guarded by the lock
  private Pace pace = new Pace(); // the thread's own

  // Proofs are replaced as one value. `resets` tells a reply that began before the data were replaced.
  private final Object proofsLock = new Object();
  private volatile Proofs proofs = Proofs.NONE;
  private int resets;
  private int askedUnder;

  // The thread's channel; written by the thread alone, but for the flags.
  private volatile Object session;
  private volatile boolean poked;
  private volatile boolean pushed;
  private volatile Exception brokenBy;
  private Watch watch;
  private boolean watchable = true;
  private volatile long questions; // written by the thread alone
  private volatile long answeredAt = Ticks.LONG_AGO;

  // Reachability.
  private record Failure(long downSince, long failedAt, String words) {}

  private volatile Failure failure;

  /** A server that nobody has asked yet. */
  public ServerEngine(RegisteredStore store, String address, Object target) {
    this.store = store;
    this.address = address;
    this.target = target;
  }

  // What a shim calls

  @Override
  public RegisteredStore store() {
    return store;
  }

  @Override
  public String address() {
    return address;
  }

  @Override
  public Object target() {
    return target;
  }

  @Override
  public Object session() {
    return session;
  }

  @Override
  public void session(Object value) {
    session = value;
  }

  @Override
  public Duration askTimeout() {
    return Duration.ofNanos(askTimeoutNanos());
  }

  private long askTimeoutNanos() {
    return Math.min(TimeUnit.SECONDS.toNanos(1), EngineSettings.now().replicaOutAfter() / 2);
  }

  @Override
  public void applied(String instance, String epoch, Map<String, Long> positions) {
    long now = Ticks.now();
    boolean replaced;
    synchronized (proofsLock) {
      if (askedUnder != resets) {
        return; // the data were replaced while the question was on its way: it may speak of those before
      }
      Proofs before = proofs;
      replaced = before.areReplacedBy(instance, epoch, positions);
      proofs = replaced ? new Proofs(instance, epoch, Map.copyOf(positions), now) : before.and(positions, now);
    }
    answeredAt = now;
    if (replaced) {
      lock.lock();
      try {
        waiters.forgetUnknown();
      } finally {
        lock.unlock();
      }
    }
  }

  @Override
  public void reset() {
    synchronized (proofsLock) {
      resets++;
      proofs = proofs.forgotten();
    }
    answeredAt = Ticks.LONG_AGO;
  }

  @Override
  public void changed() {
    pushed = true;
    wake();
  }

  @Override
  public void broken(Exception error) {
    brokenBy = error;
    wake();
  }

  @Override
  public boolean interrupted() {
    return poked;
  }

  // The free path

  /** Whether a fresh proof covers this position: no I/O, no lock (BAR-35). */
  boolean holds(String epoch, long counter, long now) {
    Proofs known = proofs;
    long ttl = EngineSettings.now().freePathTtl();
    return ttl > 0 && now - known.answeredAt() <= ttl && known.cover(epoch, counter);
  }

  /** Where the server was last seen, for a person. */
  String position() {
    Proofs known = proofs;
    if (known.epoch().isEmpty()) {
      return "an unknown position";
    }
    Long reached = known.current();
    return EpochJudge.place(known.epoch(), reached == null ? 0 : reached);
  }

  /** The words of the last failure while the server does not answer, else empty. */
  String down() {
    Failure last = failure;
    return last == null ? "" : last.words;
  }

  /** Whether it has not answered for {@code replica_out_after}, as far as is known lately (BAR-26). */
  boolean isOut(long now) {
    Failure last = failure;
    if (last == null || now - last.downSince < EngineSettings.now().replicaOutAfter()) {
      return false;
    }
    return now - last.failedAt < RETRY_MOST + 2 * askTimeoutNanos();
  }

  // Parking and giving up

  /** Waits for a need; true where it was settled at once and its group is over. */
  boolean park(Need need) {
    long now = Ticks.now();
    boolean ridesAlong;
    lock.lock();
    try {
      wantedAt = now;
      Visibility answer = atOnce(need, now);
      if (answer != null || need.leftOut) {
        ensureThread();
        return need.group.settle(need, answer);
      }
      ridesAlong = waiters.add(need);
      ensureThread();
    } finally {
      lock.unlock();
    }
    if (!ridesAlong) {
      poke();
    }
    return false;
  }

  private Visibility atOnce(Need need, long now) {
    if (need.isPosition && holds(need.epoch, need.counter, now)) {
      return Visibility.VISIBLE;
    }
    if (isOut(now)) {
      need.leftOut = true;
      return null;
    }
    return waiters.lagging(need, now, position());
  }

  /** The barrier's deadline has passed, or it was cancelled. */
  void giveUp(Need need) {
    lock.lock();
    try {
      waiters.giveUp(need);
    } finally {
      lock.unlock();
    }
  }

  /** Nobody may wait for a need: its last answer is this one. */
  void refuse(Need need, Visibility answer) {
    lock.lock();
    try {
      if (!need.isDone()) {
        need.answer = answer;
      }
    } finally {
      lock.unlock();
    }
  }

  // The thread

  private void ensureThread() {
    if (thread == null) {
      poked = false;
      thread = new Thread(this::run, "antipode-" + store.name() + "-" + address);
      thread.setDaemon(true);
      thread.setContextClassLoader(ServerEngine.class.getClassLoader()); // not the request's, which it would keep
      thread.start();
    }
  }

  /** Makes the thread ask now; from any thread. */
  private void poke() {
    if (!poked) {
      poked = true;
      wake();
    }
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
      } catch (Throwable error) { // our own fault: the barriers keep their deadlines, and are told why
        Logs.error("the thread that asks " + address + " failed", error);
        failed(error, Ticks.now());
      }
    }
  }

  private boolean isIdle() {
    lock.lock();
    try {
      return waiters.live() == 0 && Ticks.now() - wantedAt > linger;
    } finally {
      lock.unlock();
    }
  }

  /** Ends the thread if it is still idle; under the lock, so that a need parked now starts another one. */
  private boolean ends() {
    lock.lock();
    try {
      if (waiters.live() != 0 || Ticks.now() - wantedAt <= linger) {
        return false;
      }
      thread = null;
      waiters.forgetProbes();
      waiters.forgetUnknown();
      return true;
    } finally {
      lock.unlock();
    }
  }

  private boolean isWanted() {
    lock.lock();
    try {
      return waiters.wanted();
    } finally {
      lock.unlock();
    }
  }

  /** Sleeps until there is a reason to ask the server, and asks it once. */
  private void turn() {
    long now = Ticks.now();
    Shim shim = store.shim();
    long ownPace = shim.ownPace().toNanos();
    long shortest = Math.max(Math.max(EngineSettings.now().poll(), ownPace), BREATH);
    boolean wanted = isWanted();
    Failure last = failure;
    long due;
    if (last != null) {
      due = last.failedAt + pace.retry;
    } else if (wanted && pace.blocks && shim.capabilities().blockingWait()) {
      due = pace.askedAt + BREATH; // the shim itself waits
    } else if (wanted) {
      due = pace.askedAt + jittered(Math.max(pace.interval, shortest));
    } else if (watch != null) {
      due = answeredAt + Math.max(EngineSettings.now().freePathTtl() / 2, shortest);
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
    if (now < due && (woken == Woken.BY_TIME || failure != null)) {
      return;
    }
    wanted = isWanted();
    if (woken == Woken.BY_PUSH && !wanted) {
      return; // whoever comes next asks anew
    }
    if (woken == Woken.BY_POKE && now - pace.askedAt < BREATH) {
      // Bounded even while barriers keep arriving: those of one breath are asked for together.
      sleepQuietly(pace.askedAt + BREATH - now);
    }
    pace.askedAt = Ticks.now();
    boolean moved = round(wanted);
    pace.blocks = moved || poked || Ticks.now() - pace.askedAt > WAIT_SLICE / 2;
    if (failure != null) {
      pace.retry = Math.min(pace.retry * 2, RETRY_MOST);
      pace.interval = shortest;
    } else {
      pace.retry = RETRY_FIRST;
      boolean steady = moved || ownPace > 0;
      pace.interval = steady ? shortest : Math.min(Math.max(pace.interval, shortest) * 2, shortest * SAFETY_NET);
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

  /** One question; true if the server has moved. */
  private boolean round(boolean wanted) {
    long askedAt = Ticks.now();
    List<WriteId> ids;
    boolean looks;
    lock.lock();
    try {
      ids = waiters.choose(askedAt, wantedAt);
      looks = waiters.hasLooks();
    } finally {
      lock.unlock();
    }
    Proofs before = proofs;
    Shim shim = store.shim();
    questions = questions + 1;
    List<Visibility> answers;
    int askedWith;
    try {
      if (watch == null && watchable && shim.capabilities().push()) {
        openWatch(shim);
      }
      synchronized (proofsLock) {
        askedWith = askedUnder = resets;
      }
      answers =
          !ids.isEmpty() && shim.capabilities().blockingWait() && !looks
              ? shim.await(ids, this, Duration.ofNanos(WAIT_SLICE))
              : shim.visible(ids, this);
      if (answers.size() != ids.size()) {
        throw new IllegalStateException(
            shim.kind() + ": " + answers.size() + " answers to " + ids.size() + " questions");
      }
    } catch (Exception error) {
      if (error instanceof InterruptedException || shim.unreachable(error)) {
        failed(error, askedAt);
      } else {
        refused(error);
      }
      return false;
    }
    failure = null;
    synchronized (proofsLock) {
      if (askedWith != resets) {
        pushed = true; // the data were replaced meanwhile: this answer may speak of those before
        return false;
      }
    }
    Proofs after = proofs;
    if (after.epoch().isEmpty()) {
      answeredAt = Ticks.now();
    }
    if (shim.ownPace().isZero()) { // such a shim counts its questions by itself
      Telemetry.request(store.name(), wanted ? "wait" : "probe");
    }
    List<Group> released;
    lock.lock();
    try {
      released = waiters.answer(ids, answers, after.applied(), Ticks.now());
    } finally {
      lock.unlock();
    }
    Group.releaseAll(released);
    return !released.isEmpty()
        || !before.epoch().equals(after.epoch())
        || !Objects.equals(before.current(), after.current());
  }

  private void openWatch(Shim shim) throws Exception {
    try {
      watch = shim.watch(this);
    } catch (UnsupportedOperationException error) {
      watchable = false;
      Logs.info("no-push " + address, address + " cannot push, so it is polled: " + error.getMessage());
    }
  }

  /** The server is there and does not answer the question: whoever waits is told so at once (BAR-13). */
  private void refused(Exception error) {
    closeChannel();
    failure = null; // it answers, in its way: it is asked at the pace of a poll, not of a server that is down
    Visibility answer = Visibility.unproven(words(error));
    List<Group> released;
    lock.lock();
    try {
      released = waiters.answerAll(answer);
      waiters.forgetProbes();
    } finally {
      lock.unlock();
    }
    Group.releaseAll(released);
  }

  /** The server did not answer: proofs go, and after {@code replica_out_after} it is left out of every pass. */
  private void failed(Throwable error, long askedAt) {
    closeChannel();
    long now = Ticks.now();
    Failure last = failure;
    failure = new Failure(last == null ? askedAt : last.downSince, now, words(error));
    Telemetry.request(store.name(), "probe");
    if (!isOut(now)) {
      return;
    }
    List<Group> released;
    lock.lock();
    try {
      released = waiters.leaveOut();
    } finally {
      lock.unlock();
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
    try {
      if (open != null) {
        open.close();
      }
      store.shim().close(this);
    } catch (RuntimeException error) { // a shim's defect; the thread has to go on
      Logs.error("giving up the connection to " + address + " failed", error);
    }
    reset();
  }

  /** Nobody waits here any more: the thread ends now, and its channel with it. */
  public void retire() {
    Thread asking;
    lock.lock();
    try {
      wantedAt = Ticks.LONG_AGO;
      asking = thread;
    } finally {
      lock.unlock();
    }
    poke();
    if (asking != null && asking != Thread.currentThread()) {
      try {
        asking.join(TimeUnit.NANOSECONDS.toMillis(2 * askTimeoutNanos()) + 1);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  // For tests

  /** The thread that asks this server, or null. */
  Thread thread() {
    lock.lock();
    try {
      return thread;
    } finally {
      lock.unlock();
    }
  }

  /** How many questions it was asked. */
  public long questions() {
    return questions;
  }

  /** How many needs wait here. */
  int live() {
    lock.lock();
    try {
      return waiters.live();
    } finally {
      lock.unlock();
    }
  }

  /** The prober of an epoch, or null. */
  Waiters.Probe probe(String epoch) {
    lock.lock();
    try {
      return waiters.probe(epoch);
    } finally {
      lock.unlock();
    }
  }

  /** Sets for how long servers are asked on after the last barrier; returns what it was, in nanoseconds. */
  static long lingerFor(long nanos) {
    long before = linger;
    linger = nanos;
    return before;
  }
}
