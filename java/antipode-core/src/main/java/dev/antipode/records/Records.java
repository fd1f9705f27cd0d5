package dev.antipode.records;

import dev.antipode.configuration.ProcessSettings;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;

/** Dry-run records: JSON lines of what barriers would have waited for, and of findings (spec REC). */
public final class Records {
  private static final long EXIT_MILLIS = 1000;
  private static final AttributeKey<String> KIND = AttributeKey.stringKey("antipode.kind");
  private static final String HOST = host();
  private static final long PID = ProcessHandle.current().pid();
  private static final long STARTED = System.currentTimeMillis() / 1000;
  private static final RecordWriter WRITER = new RecordWriter(HOST + "-" + PID + "-" + STARTED);
  private static final AtomicBoolean HOOKED = new AtomicBoolean();
  private static final List<Runnable> AT_EXIT = new CopyOnWriteArrayList<>();

  private Records() {}

  private static String host() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException unnamed) {
      return "localhost";
    }
  }

  /** What every record begins with; the current span gets the event {@code antipode.finding} (REC-3, REC-9). */
  public static Map<String, Object> head(String kind) {
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("record", 1);
    record.put("kind", kind);
    record.put("time", System.currentTimeMillis() / 1000.0);
    String service = System.getenv("OTEL_SERVICE_NAME");
    record.put("service", service == null ? "" : service);
    record.put("region", ProcessSettings.inForce().region());
    record.put("process", HOST + ":" + PID + ":" + STARTED);
    Span span = Span.current();
    SpanContext context = span.getSpanContext();
    if (context.isValid()) {
      record.put("trace_id", context.getTraceId());
      record.put("span_id", context.getSpanId());
      span.addEvent("antipode.finding", Attributes.of(KIND, kind));
    }
    return record;
  }

  /** Queues a record; never fails and never waits. */
  public static void put(Map<String, Object> record) {
    if (HOOKED.compareAndSet(false, true)) {
      try {
        Runtime.getRuntime().addShutdownHook(new Thread(Records::end, "antipode-records-end"));
      } catch (IllegalStateException ending) { // the process ends already
        HOOKED.set(true);
      }
    }
    WRITER.put(record);
  }

  /** A lineage left before the commit of this task's own write (SCOPE-18). */
  public static void publishedBeforeCommit(String site, String store, String writtenAt) {
    Map<String, Object> record = head("published_before_commit");
    record.put("site", site);
    record.put("store", store);
    record.put("target", "");
    if (!writtenAt.isEmpty()) {
      record.put("written_at", writtenAt);
    }
    put(record);
  }

  /** A write was made outside any scope (SCOPE-9). */
  public static void orphan(String site, String store) {
    Map<String, Object> record = head("orphan");
    record.put("site", site);
    record.put("store", store);
    put(record);
  }

  /** Has this run when the process ends, before the last flush. */
  public static void atExit(Runnable work) {
    AT_EXIT.add(work);
  }

  /** The process ends: what is still followed is recorded as not seen (REC-5), and all is flushed (REC-2). */
  public static void end() {
    AT_EXIT.forEach(Runnable::run);
    if (WRITER.isUsed()) {
      WRITER.flush(EXIT_MILLIS);
    }
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
