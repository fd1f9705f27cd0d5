package dev.antipode.internal.engine;

import java.util.concurrent.TimeUnit;

/**
 * How a server's position grows, as its answers show it (BAR-66). Told from the asking of one answer to the asking of the next,
 * so that the round trip is in it already; what is older than {@code MEMORY} hardly counts. A push says that something was
 * applied, and not how much: each stands for its share of the growth. It says when to ask; what is visible, only an answer says.
 */
final class Growth {
  /** A server that somebody waits for is asked after so long in any case, or after a longer shortest interval. */
  static final long CAP = TimeUnit.MILLISECONDS.toNanos(50);

  private static final double MEMORY = TimeUnit.MILLISECONDS.toNanos(250);
  private static final long TWIN = TimeUnit.MILLISECONDS.toNanos(2); // of two such answers the second shows no standstill
  private static final double LATER = 0.08; // by this share of the time ahead a question comes behind its prediction
  private static final int FEW = 4; // so many pushes can be counted: of more the time tells better

  private String instance = "";
  private String epoch = "";
  private long askedAt;
  private long counter; // unsigned
  private boolean isMoving;
  private double grown; // how far it came,
  private double spent; // in how many nanoseconds,
  private double pushes; // with how many pushes
  private int pushed; // since the last answer

  /** An answer of this server and epoch: asked then, it was so far. */
  synchronized void note(String answering, String current, long asked, long reached) {
    boolean isOther = !answering.equals(instance) || !current.equals(epoch);
    if (isOther || Long.compareUnsigned(reached, counter) < 0) {
      instance = answering;
      epoch = current;
      isMoving = false;
      grown = 0;
      spent = 0;
      pushes = 0;
    } else {
      long nanos = asked - askedAt;
      double more = unsigned(reached - counter);
      if (more == 0 && nanos < TWIN) {
        return;
      }
      isMoving = more > 0 && nanos > 0;
      double kept = Math.exp(-nanos / MEMORY);
      grown = grown * kept + more;
      spent = spent * kept + nanos;
      pushes = pushes * kept + pushed;
    }
    askedAt = asked;
    counter = reached;
    pushed = 0;
  }

  /** A push: something was applied. */
  synchronized void notePush() {
    pushed++;
  }

  /** Return when a question should find this position, or is due without it; null where nothing tells. */
  synchronized Long expectedAt(Proofs of, Long nearest) {
    if (nearest == null || !isMoving || !of.instance().equals(instance) || !of.epoch().equals(epoch)) {
      return null;
    }
    double ahead = way(nearest) * spent / grown * (1 + LATER);
    return askedAt + (long) Math.min(Math.min(ahead, 2 * spent), CAP);
  }

  /** Whether the pushes since the last answer may have brought this position, or come seldom. */
  synchronized boolean isPushedTo(long nearest) {
    return spent >= CAP * pushes || way(nearest) * pushes / grown <= Math.min(pushed, FEW);
  }

  private double way(long nearest) {
    return Long.compareUnsigned(nearest, counter) > 0 ? unsigned(nearest - counter) : 0;
  }

  private static double unsigned(long difference) {
    return difference >= 0 ? difference : (difference >>> 1) * 2.0;
  }
}
