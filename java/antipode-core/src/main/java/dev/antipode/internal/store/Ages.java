package dev.antipode.internal.store;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;

/** When a store's positions were first seen at any of its servers: what a server's lag is told from (BAR-57). */
public final class Ages {
  private static final int MOST = 128;
  private static final long STEP = TimeUnit.MILLISECONDS.toNanos(100);

  private record AgeSample(long counter, long at) {}

  private String epoch = "";
  private final Deque<AgeSample> seen = new ArrayDeque<>();

  /** A server was seen to have applied so much of the epoch that it is in. */
  public synchronized void note(String now, long counter, long at) {
    if (!now.equals(epoch)) {
      epoch = now;
      seen.clear();
    }
    AgeSample last = seen.peekLast();
    boolean isLater = last == null || Long.compareUnsigned(counter, last.counter) > 0 && at - last.at >= STEP;
    if (isLater) {
      seen.add(new AgeSample(counter, at));
      if (seen.size() > MOST) {
        seen.remove();
      }
    }
  }

  /** For how many nanoseconds a server that is at this position has been behind another; 0 where it is not. */
  public synchronized long lag(String of, long counter, long now) {
    if (!of.equals(epoch)) {
      return 0;
    }
    for (AgeSample each : seen) {
      if (Long.compareUnsigned(each.counter, counter) > 0) {
        return now - each.at;
      }
    }
    return 0;
  }
}
