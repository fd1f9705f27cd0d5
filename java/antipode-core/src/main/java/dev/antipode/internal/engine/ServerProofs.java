package dev.antipode.internal.engine;

import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.EpochJudge;
import java.util.Map;

/**
 * What a server has proved up to now, as one value that any thread reads without a lock, and which answers were overtaken:
 * the data were replaced between the asking and the answer (BAR-33).
 */
final class ServerProofs {
  private final Object lock = new Object();
  private final Growth growth = new Growth();
  private volatile Proofs proofs = Proofs.NONE;
  private volatile long answeredAt = Ticks.LONG_AGO;
  private volatile int generation; // written under the lock, before the proofs are dropped
  private int askedUnder; // guarded by the lock
  private long askedAt = Ticks.LONG_AGO; // likewise

  /** How its position grows. */
  Growth growth() {
    return growth;
  }

  /** What is proved now. */
  Proofs now() {
    return proofs;
  }

  /** When the server last answered; long ago after a reset. */
  long answeredAt() {
    return answeredAt;
  }

  /** Return how often the proofs were dropped: an answer to a question from before may speak of other data (BAR-63). */
  int generation() {
    return generation;
  }

  /** The engine is about to ask. */
  void begin() {
    synchronized (lock) {
      askedUnder = generation;
    }
    beginQuestion();
  }

  /** A question begins: the age of what it proves counts from now (BAR-34). */
  void beginQuestion() {
    synchronized (lock) {
      askedAt = Ticks.now();
    }
  }

  /**
   * The server has answered. Return by which question; null where the data were replaced since: the answer may speak of those
   * before, and proves nothing.
   */
  Proof answered() {
    synchronized (lock) {
      if (askedUnder != generation) {
        return null;
      }
      answeredAt = Ticks.now();
      return new Proof(askedAt, generation, false);
    }
  }

  /** One reply proved this; true where it is of another instance or epoch, or the server went back. */
  boolean applied(String instance, String epoch, Map<String, Long> positions) {
    synchronized (lock) {
      if (askedUnder != generation) {
        return false;
      }
      boolean replaced = proofs.areReplacedBy(instance, epoch, positions);
      if (replaced) {
        generation = generation + 1;
        askedUnder = generation; // this reply is the first word of these data
        proofs = new Proofs(instance, epoch, Map.copyOf(positions), askedAt, generation);
      } else {
        proofs = proofs.and(positions, askedAt);
      }
      Long reached = proofs.current();
      if (reached != null) {
        growth.note(instance, epoch, askedAt, reached);
      }
      return replaced;
    }
  }

  /** Drops every proof: the connection or the server's data may be another one. */
  void reset() {
    synchronized (lock) {
      generation = generation + 1;
      proofs = proofs.forgotten(generation);
      answeredAt = Ticks.LONG_AGO;
    }
  }

  /** Return the generation of the fresh proof that covers this position; -1 where none does. */
  int generationOfProof(String epoch, long counter, long now) {
    Proofs known = proofs;
    return isFresh(known, epoch, counter, now) ? known.generation() : -1;
  }

  /** Return what proves a position without a question: an answer to others, which is fresh enough; null where nothing does. */
  Proof kept(PendingWait need, long now) {
    Proofs known = proofs;
    return known.askedAt() >= need.freshFrom && isFresh(known, need.epoch, need.counter, now)
        ? new Proof(known.askedAt(), known.generation(), true)
        : null;
  }

  private static boolean isFresh(Proofs known, String epoch, long counter, long now) {
    long ttl = EngineSettings.now().freePathTtl();
    return ttl > 0 && now - known.askedAt() <= ttl && known.cover(epoch, counter);
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
}
