package dev.antipode.barrier;

import dev.antipode.Ordered;
import dev.antipode.WriteId;
import dev.antipode.shim.Visibility;

/** One write that one barrier waits for at one server. Its server's lock guards it until it is done. */
final class Need {
  final WriteId writeId;
  final ServerEngine server;
  final Group group;

  /** Whether it is a position; then {@code epoch} and {@code counter} are its own. */
  final boolean isPosition;

  final String epoch;
  final long counter;

  /** The last answer of the server; null while it has not been asked. */
  Visibility answer;

  /** When it was settled, {@link Ticks}. */
  long seenAt;

  /** It was not settled at once: it has to be waited for. */
  boolean parked;

  /** The number of the server's first question that speaks of it. */
  int firstRound;

  /** The first look did not show the write. */
  boolean late;

  /** It waited to know the servers, and other needs stand for it there. */
  volatile boolean divided;

  /** The server does not answer, and is left out of the pass. */
  boolean leftOut;

  /** Overload answered for it (BAR-39, BAR-40). */
  boolean overloaded;

  /** Settled or given up; written last, so that who sees it sees all of the above. */
  private volatile boolean done;

  Need(WriteId writeId, ServerEngine server, Group group) {
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

  /** It is over, one way or another; with the server's lock held. */
  void finish(Visibility last) {
    seenAt = Ticks.now();
    if (last != null) {
      answer = last;
    }
    done = true;
  }

  boolean isVisible() {
    return answer != null && answer.isVisible();
  }
}
