package dev.antipode.internal.engine;

import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import java.util.Collection;

/** One write at one server that dry-run follows: what the first look said, and when it was seen. */
public final class FollowedWrite {
  final PendingWait look;
  PendingWait park; // null where the first look was the last
  private Visibility first; // null where the server did not answer, or where nobody asked it any more
  private Visibility answer;
  private Long at;
  private Double visibleAfter;

  FollowedWrite(PendingWait look) {
    this.look = look;
  }

  /** Where it is looked for. */
  public Server server() {
    return look.server;
  }

  /** The write. */
  public WriteId writeId() {
    return look.writeId;
  }

  /** How far the server was in the write's epoch at the first look, unsigned; null where it did not say. */
  public Long at() {
    return at;
  }

  /** Seconds until it was seen; null where it was not. */
  public Double visibleAfter() {
    return visibleAfter;
  }

  /** The first look found that it was not visible: the server knows the write's history, and was not so far. */
  public boolean isLate() {
    if (!wasMissing()) {
      return false;
    }
    return !first.unknownEpoch() || (answer != null && answer.isVisible());
  }

  /** The server did not answer for so long that a barrier would leave it out. */
  boolean isLeftOut() {
    return look.leftOut;
  }

  /** The first look found it visible. */
  public boolean wasThereAtOnce() {
    return first != null && first.isVisible();
  }

  /** Seconds until the last of these was seen, as records have it; null where one was not. */
  public static Double visibleAfter(Collection<FollowedWrite> writes) {
    double last = 0;
    for (FollowedWrite write : writes) {
      if (write.visibleAfter == null) {
        return null;
      }
      last = Math.max(last, write.visibleAfter);
    }
    return writes.isEmpty() ? null : Math.round(last * 1e6) / 1e6;
  }

  /** The first look is over; whether the write was not there. */
  boolean looked(long since) {
    if (!look.leftOut) {
      first = look.answer;
      took(first, since, look.seenAt);
    }
    if (look.isPosition) {
      at = look.server.appliedIn(look.epoch);
    }
    return first != null && first.verdict() == Verdict.NOT_YET;
  }

  /** The server itself said <em>not yet</em> at the first look, and did not put the question off (REC-13). */
  boolean wasMissing() {
    return first != null && first.verdict() == Verdict.NOT_YET && !first.unanswered();
  }

  /** It is not followed any more. */
  void ended(long since) {
    if (park != null && park.isDone()) {
      took(park.answer == null ? answer : park.answer, since, park.seenAt);
    }
  }

  private void took(Visibility last, long since, long seenAt) {
    answer = last;
    if (last != null && last.isVisible()) {
      visibleAfter = Math.max(seenAt - since, 0) / 1e9;
    }
  }
}
