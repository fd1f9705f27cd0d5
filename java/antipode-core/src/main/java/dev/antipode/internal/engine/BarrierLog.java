package dev.antipode.internal.engine;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** Counts, by store, the barriers that judged it, while a test asks for it. */
public final class BarrierLog {
  private static volatile BarrierLog current;

  private final Map<String, LongAdder> counts = new ConcurrentHashMap<>();

  /** Nothing judged yet. */
  public BarrierLog() {}

  /** The log that is kept now, or null. */
  public static BarrierLog current() {
    return current;
  }

  /** Keeps this log from now on, or none; returns the one before. */
  public static synchronized BarrierLog keep(BarrierLog log) {
    BarrierLog before = current;
    current = log;
    return before;
  }

  void note(String store) {
    counts.computeIfAbsent(store, name -> new LongAdder()).increment();
  }

  /** How many barriers judged this store. */
  public long count(String store) {
    LongAdder counted = counts.get(store);
    return counted == null ? 0 : counted.sum();
  }
}
