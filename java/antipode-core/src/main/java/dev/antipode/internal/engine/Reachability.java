package dev.antipode.internal.engine;

import dev.antipode.internal.base.Ticks;
import java.util.concurrent.TimeUnit;

/** Whether a server answers: since when it does not, and in which words (BAR-26). The asking thread writes, any reads. */
final class Reachability {
  /** The longest pause between two questions to a server that does not answer, in nanoseconds. */
  static final long RETRY_MOST = TimeUnit.MILLISECONDS.toNanos(500);

  private record Failure(long downSince, long failedAt, String words) {}

  private volatile Failure failure;

  /** It answered, or refused, which is an answer in its way. */
  void answered() {
    failure = null;
  }

  /**
   * It did not answer a question that was asked at {@code askedAt}. How long this process itself stood still is no silence of
   * the server (BAR-61): a question counts for as long as one may take.
   */
  void failed(long askedAt, long now, String words) {
    Failure last = failure;
    boolean goesOn = last != null && isOfLate(last, now);
    failure = new Failure(goesOn ? last.downSince : Math.max(askedAt, now - EngineSettings.now().askTimeout()), now, words);
  }

  /** Whether its last question had no answer. */
  boolean isDown() {
    return failure != null;
  }

  /** When it last failed to answer; only while it is down. */
  long failedAt() {
    Failure last = failure;
    return last == null ? Ticks.LONG_AGO : last.failedAt;
  }

  /** The words of the last failure while the server does not answer, else empty. */
  String words() {
    Failure last = failure;
    return last == null ? "" : last.words;
  }

  /** Whether it has not answered for {@code replica_out_after}, as far as is known lately. */
  boolean isOut(long now) {
    Failure last = failure;
    if (last == null || now - last.downSince < EngineSettings.now().replicaOutAfter()) {
      return false;
    }
    return isOfLate(last, now);
  }

  /** Return whether its last silence was not long ago: somebody has asked it ever since. */
  private static boolean isOfLate(Failure last, long now) {
    return now - last.failedAt < RETRY_MOST + 2 * EngineSettings.now().askTimeout();
  }
}
