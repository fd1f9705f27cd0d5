package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.observer.ObservedScope;
import dev.antipode.shim.CallSite;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;

/** Dry-run's records of what scopes lose, and of what leaves them (spec REC). Made by those who are in dry-run alone. */
public final class Findings {
  private static final Map<ObservedScope, Set<String>> PASSED = Collections.synchronizedMap(new WeakHashMap<>());

  private Findings() {}

  /** A lineage left before the commit of this task's own write (SCOPE-18). */
  static void publishedBeforeCommit(String site, String store, String writtenAt) {
    Map<String, Object> record = leaving("published_before_commit", site, store, writtenAt);
    Records.event(record, Span.current());
    Records.put(record);
  }

  /** A lineage left while a write of another task was in flight: no violation (SCOPE-18). */
  static void concurrentWrite(String site, String store, String writtenAt) {
    often(leaving("concurrent_write", site, store, writtenAt));
  }

  private static Map<String, Object> leaving(String kind, String site, String store, String writtenAt) {
    Map<String, Object> record = at(kind, site, store);
    record.put("target", "");
    if (!writtenAt.isEmpty()) {
      record.put("written_at", writtenAt);
    }
    return record;
  }

  /** A write was made outside any scope (SCOPE-9). */
  static void orphan(String site, String store) {
    Map<String, Object> record = at("orphan", site, store);
    Records.event(record, Span.current());
    Records.put(record);
  }

  /** A write was made in a scope that had ended ({@code closed}), or after the response's header had left ({@code sent}). */
  static void lateWrite(String site, String store, String reason) {
    Map<String, Object> record = at("late_write", site, store);
    record.put("reason", reason);
    often(record);
  }

  /** A lineage came in incomplete, for this scope. */
  static void received(String store, ObservedScope scope) {
    incomplete("received", store, "", scope);
  }

  /** A scope's lineage became incomplete at this site; null: that of none. */
  static void incomplete(String reason, String store, String site, ObservedScope scope) {
    Map<String, Object> record = Records.head("incomplete");
    if (!site.isEmpty()) {
      record.put("site", site);
    }
    if (!store.isEmpty()) {
      record.put("store", store);
    }
    record.put("reason", reason);
    record.put("origin", origin(scope));
    often(record);
  }

  private static Map<String, Object> at(String kind, String site, String store) {
    Map<String, Object> record = Records.head(kind);
    record.put("site", site);
    record.put("store", store);
    return record;
  }

  /** At once the first time, then once a minute with their number (REC-17). */
  private static void often(Map<String, Object> record) {
    Records.event(record, Span.current());
    Object key = Arrays.asList(record.get("kind"), record.get("site"), record.get("store"), record.get("reason"));
    if (Records.HELD.admit(key, record)) {
      Records.put(record);
    } else {
      Records.start(); // who writes what is held back
    }
  }

  /** A lineage that a message or request had brought leaves with a call, in a trace that is sampled (REC-18). */
  static void passedOn(ObservedScope scope, String target) {
    SpanContext trace = Span.current().getSpanContext();
    if (!trace.isValid() || !scope.hasBrought() || !Records.isSampled(trace)) {
      return;
    }
    String site = CallSite.current();
    if (PASSED.computeIfAbsent(scope, first -> ConcurrentHashMap.newKeySet(2)).add(site)) {
      Map<String, Object> record = Records.head("passed_on");
      record.put("site", site);
      record.put("origin", origin(scope));
      record.put("target", target);
      Records.put(record);
    }
  }

  /** Where a lineage came from (REC-7); asked while the request runs, which knows its route by now. */
  public static Map<String, Object> origin(ObservedScope scope) {
    Map<String, Object> origin = new LinkedHashMap<>();
    if (scope == null) {
      origin.put("scope", "task");
      return origin;
    }
    origin.put("scope", scope.kind().word());
    origin.put("opened_by", scope.openedBy());
    if (!scope.queue().isEmpty()) {
      origin.put("store", scope.queue());
    }
    return origin;
  }
}
