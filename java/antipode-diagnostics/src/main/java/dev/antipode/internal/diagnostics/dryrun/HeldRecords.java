package dev.antipode.internal.diagnostics.dryrun;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Records that a request each could make: one at once, then one a minute with how many there were (REC-17). */
final class HeldRecords {
  private static final long PERIOD = TimeUnit.MINUTES.toNanos(1);
  private static final int MOST = 1000;
  private static final Object OTHERS = new Object(); // the key of those that stand together

  private final LongSupplier clock;
  // Under the lock of this:
  private final Map<Object, Long> written = new HashMap<>();
  private final Map<Object, Map<String, Object>> held = new LinkedHashMap<>();

  HeldRecords() {
    this(System::nanoTime);
  }

  /** By this clock, in nanoseconds (tests). */
  HeldRecords(LongSupplier clock) {
    this.clock = clock;
  }

  /** Whether the record is to be written now; if not, it counts for the next of its key. */
  synchronized boolean admit(Object key, Map<String, Object> record) {
    long now = clock.getAsLong();
    Object counted = key;
    if (isOver(key, now) && !held.containsKey(key)) {
      if (written.size() >= MOST) {
        written.values().removeIf(at -> now - at >= PERIOD);
      }
      if (written.size() < MOST) {
        written.put(key, now);
        return true;
      }
      counted = OTHERS; // so many different ones within a minute
    }
    Map<String, Object> before = held.get(counted);
    Map<String, Object> last = new LinkedHashMap<>(record);
    last.put("count", before == null ? 1 : (int) before.get("count") + 1);
    held.put(counted, last);
    return false;
  }

  private boolean isOver(Object key, long now) {
    Long at = written.get(key);
    return at == null || now - at >= PERIOD;
  }

  /** Those of the keys whose minute is over, or all: the last of each, with the number of them. */
  synchronized List<Map<String, Object>> due(boolean all) {
    long now = clock.getAsLong();
    List<Object> keys = held.keySet().stream().filter(key -> all || isOver(key, now)).toList();
    List<Map<String, Object>> due = new ArrayList<>(keys.size());
    for (Object key : keys) {
      written.put(key, now);
      due.add(held.remove(key));
    }
    return due;
  }

  /** Forgets what was written and held back (tests). */
  synchronized void forget() {
    written.clear();
    held.clear();
  }
}
