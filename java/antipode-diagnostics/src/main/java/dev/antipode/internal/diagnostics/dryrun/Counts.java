package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.ScopeKind;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** What dry-run's summaries count: plain numbers that only grow, so that counting costs a look-up (REC-16). */
public final class Counts {
  private static final int MOST = 10_000;
  private static final CounterKey REQUESTS = new CounterKey("requests", "", "");
  private static final CounterKey MESSAGES = new CounterKey("messages", "", "");
  private static final CounterKey ENFORCED = new CounterKey("enforced_barriers", "", "");
  private static final Comparator<CounterKey> IN_ORDER =
      Comparator.comparing(CounterKey::what).thenComparing(CounterKey::site).thenComparing(CounterKey::store);
  private static final Map<CounterKey, LongAdder> COUNTS = new ConcurrentHashMap<>();

  private Counts() {}

  /**
   * What is counted, and where.
   *
   * @param what its word in summaries
   * @param site empty where that does not belong to it
   * @param store likewise
   */
  public record CounterKey(String what, String site, String store) {}

  /** One more. Past so many different ones new ones are counted without their site. */
  public static void add(String what, String site, String store) {
    add(new CounterKey(what, site, store));
  }

  /** A scope was opened: a request's and a message's are counted. */
  static void opened(ScopeKind kind) {
    if (kind == ScopeKind.REQUEST) {
      add(REQUESTS);
    } else if (kind == ScopeKind.MESSAGE) {
      add(MESSAGES);
    }
  }

  /** A barrier waited for all that it was asked about, and passed. */
  static void enforced() {
    add(ENFORCED);
  }

  private static void add(CounterKey counted) {
    LongAdder count = COUNTS.get(counted);
    if (count == null) {
      if (COUNTS.size() >= MOST && !counted.site().isEmpty()) {
        add(new CounterKey(counted.what(), "", counted.store()));
        return;
      }
      count = COUNTS.computeIfAbsent(counted, first -> new LongAdder());
    }
    count.increment();
  }

  /** Every count as it is now. */
  public static Map<CounterKey, Long> snapshot() {
    Map<CounterKey, Long> now = new HashMap<>();
    COUNTS.forEach((counted, count) -> now.put(counted, count.sum()));
    return now;
  }

  /** How many there were of this, at all sites and stores. */
  public static long total(String what) {
    return snapshot().entrySet().stream()
        .filter(entry -> entry.getKey().what().equals(what))
        .mapToLong(Map.Entry::getValue)
        .sum();
  }

  /** What was counted between two snapshots, as summaries have it. */
  static List<Map<String, Object>> between(Map<CounterKey, Long> before, Map<CounterKey, Long> now) {
    TreeSet<CounterKey> all = new TreeSet<>(IN_ORDER);
    all.addAll(now.keySet());
    List<Map<String, Object>> counts = new ArrayList<>();
    for (CounterKey counted : all) {
      long more = now.get(counted) - before.getOrDefault(counted, 0L);
      if (more != 0) {
        Map<String, Object> count = new LinkedHashMap<>();
        count.put("what", counted.what());
        if (!counted.site().isEmpty()) {
          count.put("site", counted.site());
        }
        if (!counted.store().isEmpty()) {
          count.put("store", counted.store());
        }
        count.put("count", more);
        counts.add(count);
      }
    }
    return counts;
  }

  /** Counts from nothing (tests). */
  static void reset() {
    COUNTS.clear();
  }
}
