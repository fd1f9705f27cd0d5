package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.internal.base.HostName;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.engine.FollowRegistry;
import dev.antipode.shim.Setting;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;

/** Dry-run records: JSON lines of what barriers would have waited for, and of findings (spec REC). */
public final class Records {
  private static final long EXIT_MILLIS = 1000;
  // Fields that a span's event has under their own names; those of a barrier's stores are known later than that.
  private static final List<String> TOLD = List.of(
      "kind", "site", "region", "process", "store", "server", "confirmed", "visible_after", "written_at", "target",
      "barrier", "reason", "reach", "lineage_stores", "registered");
  private static final int RANDOM_BITS = 56; // W3C's trace context has the last ones of a trace id random
  private static final String HOST = HostName.own();
  private static final long PID = ProcessHandle.current().pid();
  private static final long STARTED = System.currentTimeMillis() / 1000;
  private static final AtomicBoolean HOOKED = new AtomicBoolean();
  private static final Summaries SUMMARIES = new Summaries();
  static final HeldRecords HELD = new HeldRecords();
  private static final RecordWriter WRITER =
      new RecordWriter(HOST + "-" + PID + "-" + STARTED, () -> due(false));

  private Records() {}

  static double now() {
    return System.currentTimeMillis() / 1000.0;
  }

  /** What every record begins with (REC-3), and the trace that is current. */
  public static Map<String, Object> head(String kind) {
    Map<String, Object> record = headOfNoTrace(kind);
    SpanContext context = Span.current().getSpanContext();
    if (context.isValid()) {
      record.put("trace_id", context.getTraceId());
      record.put("span_id", context.getSpanId());
    }
    return record;
  }

  /** What every record begins with, of one that no request has made. */
  static Map<String, Object> headOfNoTrace(String kind) {
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("record", 1);
    record.put("kind", kind);
    record.put("time", now());
    String service = System.getenv("OTEL_SERVICE_NAME");
    record.put("service", service == null ? "" : service);
    record.put("region", ProcessSettings.inForce().region());
    record.put("process", HOST + ":" + PID + ":" + STARTED);
    return record;
  }

  /** The record is an event of the span, too, where that has not ended: with what is known by now (REC-9, OBS-11). */
  public static void event(Map<String, Object> record, Span span) {
    if (!span.isRecording()) {
      return;
    }
    AttributesBuilder told = Attributes.builder();
    for (String name : TOLD) {
      Object word = record.get(name);
      if (word instanceof Double number) {
        told.put("antipode." + name, number);
      } else if (word instanceof Collection<?> words) {
        told.put("antipode." + name, words.stream().map(Object::toString).toArray(String[]::new));
      } else if (word != null && !word.equals("")) {
        told.put("antipode." + name, word.toString());
      }
    }
    if (record.get("origin") instanceof Map<?, ?> origin) {
      origin.forEach((name, word) -> told.put("antipode.origin." + name, word.toString()));
    }
    if (record.get("store_kind") instanceof String kind) {
      told.put("antipode.store.kind", kind);
    }
    span.addEvent("antipode.finding", told.build());
  }

  /** Whether what happens now is in the sample: by the trace where there is one, else by chance (REC-12). */
  public static boolean isSampled(SpanContext context) {
    double share = ProcessSettings.inForce().sample();
    return context.isValid()
        ? isSampled(context.getTraceId(), share)
        : ThreadLocalRandom.current().nextDouble() < share;
  }

  /** Whether a trace is in the sample, alike in every process: its last 7 octets, as a share of 2^56 (REC-12). */
  static boolean isSampled(String traceId, double share) {
    long random = Long.parseUnsignedLong(traceId.substring(traceId.length() - RANDOM_BITS / 4), 16);
    return random < (long) Math.ceil(share * (1L << RANDOM_BITS)); // whole numbers: a double has fewer bits
  }

  /** Queues a record; never fails and never waits. */
  public static void put(Map<String, Object> record) {
    hook();
    WRITER.put(record);
  }

  /** The process is in dry-run: from now on there are summaries. */
  public static void start() {
    hook();
    WRITER.start();
  }

  /** Counts a barrier that judged what it was asked about, and passed, where the process enforces (REC-26). */
  static void countEnforced() {
    Counts.enforced();
    if (!WRITER.isUsed() && ProcessSettings.inForce().said(Setting.RECORDS) != null) {
      start();
    }
  }

  private static void hook() {
    if (!HOOKED.get() && HOOKED.compareAndSet(false, true)) {
      try {
        Runtime.getRuntime().addShutdownHook(new Thread(Records::end, "antipode-records-end"));
      } catch (IllegalStateException ending) { // the process ends already
        HOOKED.set(true);
      }
    }
  }

  /** What is written about once a minute. */
  private static List<Map<String, Object>> due(boolean all) {
    List<Map<String, Object>> due = new ArrayList<>(HELD.due(all));
    due.addAll(SUMMARIES.due());
    return due;
  }

  /**
   * The process ends: what is still followed is recorded as not seen (REC-5), what was held back and counted is written, and
   * all is flushed (REC-2).
   */
  public static void end() {
    FollowRegistry.giveUpAll();
    Repeats.giveUpAll();
    if (WRITER.isUsed()) {
      due(true).forEach(WRITER::put);
      WRITER.flush(EXIT_MILLIS);
    }
  }

  /** Forgets what was counted and held back, and what was to be repeated (tests: what one left is no record of the next). */
  public static void forget() {
    Repeats.forget();
    HELD.forget();
    SUMMARIES.reset();
  }

  /** Waits until every record put so far is on disk; false where that took longer. */
  public static boolean flush(long millis) {
    return WRITER.flush(millis);
  }

  /** Records that were not written. */
  static long dropped() {
    return WRITER.dropped();
  }
}
