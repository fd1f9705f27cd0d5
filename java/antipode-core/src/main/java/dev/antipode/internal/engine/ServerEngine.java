package dev.antipode.internal.engine;

import dev.antipode.UnprovenKind;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * One server of a store: what it has proved, and who waits for it (spec BAR, EPOCH). {@link Asker} asks it,
 * {@link ServerProofs} keeps what it proved, {@link Reachability} whether it answers.
 */
public class ServerEngine implements Server {
  private final ServerInside inside;
  private final Asker asker;
  private final Object target;
  private volatile Object session;

  /** A server that nobody has asked yet. */
  public ServerEngine(RegionStore store, String address, Object target) {
    this.inside = new ServerInside(store, address);
    this.asker = new Asker(inside, this);
    this.target = target;
  }

  // What a shim calls

  @Override
  public RegionStore store() {
    return inside.store;
  }

  @Override
  public String address() {
    return inside.address;
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
    return Duration.ofNanos(EngineSettings.now().askTimeout());
  }

  @Override
  public void applied(String instance, String epoch, Map<String, Long> positions) {
    inside.store.ages().note(epoch, positions.getOrDefault(epoch, 0L), Ticks.now());
    if (inside.proofs.applied(instance, epoch, positions)) {
      inside.lock.lock();
      try {
        inside.waiters.forgetUnknown();
      } finally {
        inside.lock.unlock();
      }
    }
  }

  @Override
  public void beginQuestion() {
    inside.proofs.beginQuestion();
  }

  @Override
  public void reset() {
    inside.proofs.reset();
  }

  @Override
  public void changed() {
    asker.changed();
  }

  @Override
  public void broken(Exception error) {
    asker.broken(error);
  }

  @Override
  public boolean awaited() {
    inside.lock.lock();
    try {
      return inside.waiters.awaited();
    } finally {
      inside.lock.unlock();
    }
  }

  @Override
  public void rest(Duration lead) {
    asker.rest(lead.toNanos());
  }

  @Override
  public boolean interrupted() {
    return asker.isPoked();
  }

  // What is known of it

  /** Return how often its proofs were dropped (BAR-63). */
  int generation() {
    return inside.proofs.generation();
  }

  /** Whether a fresh proof covers this position: no I/O, no lock (BAR-35). */
  boolean holds(String epoch, long counter, long now) {
    return generationOfProof(epoch, counter, now) >= 0;
  }

  /** Return the generation of the fresh proof that covers this position; -1 where none does (BAR-63). */
  int generationOfProof(String epoch, long counter, long now) {
    return inside.proofs.generationOfProof(epoch, counter, now);
  }

  /** How far the server was last seen in an epoch, unsigned; null where it has not said. */
  Long appliedIn(String epoch) {
    return inside.proofs.now().applied().get(epoch);
  }

  /** Where the server was last seen, for a person. */
  String position() {
    return inside.proofs.position();
  }

  /** The words of the last failure while the server does not answer, else empty. */
  String down() {
    return inside.reach.words();
  }

  /** Whether it has not answered for {@code replica_out_after}, as far as is known lately (BAR-26). */
  boolean isOut(long now) {
    return inside.reach.isOut(now);
  }

  // Parking and giving up

  /** Waits for a need; true where it was settled at once and its group may be over. */
  boolean park(PendingWait need) {
    long now = Ticks.now();
    boolean ridesAlong;
    inside.lock.lock();
    try {
      if (need.isDone()) { // its barrier has given up meanwhile
        return false;
      }
      inside.wantedAt = now;
      inside.hurried |= !need.group.follows;
      try {
        asker.ensureRunning();
      } catch (OutOfMemoryError error) { // nothing is asked, nothing is known (BAR-61)
        String words = "this process can start nothing that asks " + address() + " (" + error.getMessage() + ")";
        return need.group.settle(need, Visibility.unproven(words, UnprovenKind.OWN_FAULT));
      }
      Proof proof = need.isPosition ? inside.proofs.kept(need, now) : null;
      need.leftOut = proof == null && isOut(now);
      if (proof != null || need.leftOut) {
        return need.group.settle(need, proof != null ? Visibility.VISIBLE : null, proof);
      }
      asker.lookAgain(); // one that `conclude` opened again was not among those that had lost it
      ridesAlong = inside.waiters.add(need, need.epoch.equals(inside.proofs.now().epoch()) ? inside.lag(now) : 0);
    } finally {
      inside.lock.unlock();
    }
    if (!ridesAlong) {
      asker.poke();
    }
    return false;
  }

  /** The barrier's deadline has passed, or it was cancelled. */
  void giveUp(PendingWait need) {
    inside.lock.lock();
    try {
      inside.waiters.giveUp(need, Ticks.now());
    } finally {
      inside.lock.unlock();
    }
  }

  /** Nobody waits here any more: the thread ends now, and its channel with it. */
  public void retire() {
    Thread asking;
    inside.lock.lock();
    try {
      inside.wantedAt = Ticks.LONG_AGO;
      asking = asker.thread();
    } finally {
      inside.lock.unlock();
    }
    asker.poke();
    if (asking != null && asking != Thread.currentThread()) {
      try {
        asking.join(TimeUnit.NANOSECONDS.toMillis(2 * EngineSettings.now().askTimeout()) + 1);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  // For tests

  /** The thread that asks this server, or null. */
  Thread thread() {
    inside.lock.lock();
    try {
      return asker.thread();
    } finally {
      inside.lock.unlock();
    }
  }

  /** The connection by which it is asked, and the next one. */
  Renewal renewal() {
    return asker.renewal();
  }

  /** How many questions it was asked. */
  public long questions() {
    return asker.questions();
  }

  /** How many needs wait here. */
  int live() {
    inside.lock.lock();
    try {
      return inside.waiters.live();
    } finally {
      inside.lock.unlock();
    }
  }

  /** Return how many epochs it does not know, of those that were asked for of late. */
  int unknownEpochs() {
    inside.lock.lock();
    try {
      return inside.waiters.unknownEpochs();
    } finally {
      inside.lock.unlock();
    }
  }

  /** The prober of an epoch, or null. */
  WaitQueue.Probe probe(String epoch) {
    inside.lock.lock();
    try {
      return inside.waiters.probe(epoch);
    } finally {
      inside.lock.unlock();
    }
  }

  /** Sets for how long servers are asked on after the last barrier; returns what it was, in nanoseconds. */
  static long lingerFor(long nanos) {
    long before = ServerInside.linger;
    ServerInside.linger = nanos;
    return before;
  }
}
