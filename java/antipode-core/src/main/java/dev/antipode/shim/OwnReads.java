package dev.antipode.shim;

import dev.antipode.records.Digests;
import dev.antipode.records.Repeats;
import java.util.Arrays;
import java.util.concurrent.Callable;

/**
 * Reads of the shim's own, compared with each other where nobody has what the application got (REC-22): one while something
 * is missing, and two behind it. Only digests of them are kept, and no longer than the read is followed.
 */
final class OwnReads {
  private final Callable<?> again;
  private volatile boolean hasBegun;
  private volatile boolean isOver;
  private volatile byte[] first; // null where it was not sent in time, or cannot be compared

  /** {@code again} sends the read, and gives what came as plain data; called by the thread of {@link Repeats}. */
  OwnReads(Callable<?> again) {
    this.again = again;
  }

  /** The first look said that something is missing: has the first one sent. Never waits. */
  void begin() {
    Repeats.soon(() -> {
      hasBegun = true;
      if (!isOver) { // else it would say nothing
        first = Digests.of(again.call());
      }
    });
  }

  /**
   * Nothing is missing any more, or nobody looks on: a first one that has not been sent by now is none. Returns whether there
   * may be one.
   */
  boolean over() {
    isOver = true;
    return hasBegun;
  }

  /**
   * Whether the two that come now have the same result, and the first one had another: the second of them is left out where
   * it could not make that true.
   */
  boolean differ() throws Exception {
    byte[] before = first;
    byte[] now = before == null ? null : Digests.of(again.call());
    return now != null && !Arrays.equals(before, now) && Arrays.equals(now, Digests.of(again.call()));
  }
}
