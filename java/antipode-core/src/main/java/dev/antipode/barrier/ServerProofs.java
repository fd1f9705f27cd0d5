package dev.antipode.barrier;

import java.util.Map;

/**
 * What a server has proved up to now, as one value that any thread reads without a lock, and which answers were overtaken:
 * the data were replaced between the asking and the answer (BAR-33).
 */
final class ServerProofs {
  private final Object lock = new Object();
  private volatile Proofs proofs = Proofs.NONE;
  private volatile long answeredAt = Ticks.LONG_AGO;
  private int resets; // guarded by the lock
  private int askedUnder; // guarded by the lock

  /** What is proved now. */
  Proofs now() {
    return proofs;
  }

  /** When the server last answered; long ago after a reset. */
  long answeredAt() {
    return answeredAt;
  }

  /** A question is about to be asked. */
  void asking() {
    synchronized (lock) {
      askedUnder = resets;
    }
  }

  /** Whether the data were replaced since: then the answer may speak of those before, and proves nothing. */
  boolean wasOvertaken() {
    synchronized (lock) {
      return askedUnder != resets;
    }
  }

  /** One reply proved this; true where it is of another instance or epoch, or the server went back. */
  boolean applied(String instance, String epoch, Map<String, Long> positions) {
    long now = Ticks.now();
    boolean replaced;
    synchronized (lock) {
      if (askedUnder != resets) {
        return false;
      }
      Proofs before = proofs;
      replaced = before.areReplacedBy(instance, epoch, positions);
      proofs = replaced ? new Proofs(instance, epoch, Map.copyOf(positions), now) : before.and(positions, now);
    }
    answeredAt = now;
    return replaced;
  }

  /** The server has answered, and is of a kind that proves no positions. */
  void answered() {
    if (proofs.epoch().isEmpty()) {
      answeredAt = Ticks.now();
    }
  }

  /** Drops every proof: the connection or the server's data may be another one. */
  void reset() {
    synchronized (lock) {
      resets++;
      proofs = proofs.forgotten();
    }
    answeredAt = Ticks.LONG_AGO;
  }

  /** Whether a fresh proof covers this position. */
  boolean hold(String epoch, long counter, long now) {
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
}
