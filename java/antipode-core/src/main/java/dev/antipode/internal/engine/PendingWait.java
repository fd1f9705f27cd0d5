package dev.antipode.internal.engine;

import dev.antipode.Ordered;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Visibility;

/** One write that one barrier waits for at one server. Its server's lock guards it until it is done. */
final class PendingWait {
  final WriteId writeId;
  final ServerEngine server;
  final WaitGroup group;

  /** Whether it is a position; then {@code epoch} and {@code counter} are its own. */
  final boolean isPosition;

  final String epoch;
  final long counter;

  /** The last answer of the server; null while it has not been asked, or is to be asked again. */
  Visibility answer;

  /** When it was settled, {@link Ticks}. */
  long seenAt;

  /** What settled it last; null before. The lock of its group guards it. */
  Proof proof;

  /** It is to be proved by what was asked for then or later, {@link Ticks}. */
  long freshFrom = Ticks.LONG_AGO;

  /** It was proved before, only its proof was too old, and no answer since said that it is not there. */
  boolean repeats;

  /** It was not settled at once: it has to be waited for. */
  boolean parked;

  /** The number of the server's first question that speaks of it. */
  int firstRound;

  /** It waited to know the servers, and other needs stand for it there. */
  volatile boolean divided;

  /** The server does not answer, and is left out of the pass. */
  boolean leftOut;

  /** Overload answered for it (BAR-39, BAR-40). */
  boolean overloaded;

  /** Settled or given up; written last, so that who sees it sees all of the above. */
  private volatile boolean done;

  PendingWait(WriteId writeId, ServerEngine server, WaitGroup group) {
    this.writeId = writeId;
    this.server = server;
    this.group = group;
    this.isPosition = writeId.isPosition();
    if (isPosition) {
      Ordered version = (Ordered) writeId.version();
      this.epoch = version.epoch();
      this.counter = version.counter();
    } else {
      this.epoch = "";
      this.counter = 0;
    }
  }

  /** Return what its time-outs count by: the epoch of a position, the key of an object (BAR-40). */
  Object key() {
    return isPosition ? epoch : writeId.key();
  }

  boolean isDone() {
    return done;
  }

  /** It is over, one way or another; under the lock of its group. */
  void finish() {
    done = true;
  }

  /** It is open again: to be parked, and proved by what was asked for then or later; under the lock of its group. */
  void open(long since) {
    repeats = proof.generation() == server.generation();
    freshFrom = since;
    parked = false;
    answer = null;
    seenAt = 0;
    done = false;
  }

  boolean isVisible() {
    return answer != null && answer.isVisible();
  }

  /** Return whether it counts as visible by an answer that may stop to be true. */
  boolean needsProof() {
    return isVisible() && !divided;
  }

  /** Return whether a proof is of the server's present generation, and was asked for then or later. */
  boolean stands(Proof shown, long since) {
    return shown.generation() == server.generation() && shown.askedAt() >= since;
  }
}
