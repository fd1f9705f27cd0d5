package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.telemetry.Telemetry;
import dev.antipode.internal.engine.BarrierObservation;
import dev.antipode.internal.engine.FollowedWrite;
import dev.antipode.internal.engine.FollowRegistry;
import dev.antipode.observer.ObservedStore;
import dev.antipode.observer.ReadObserver;
import dev.antipode.observer.ReadReply;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.Logs;
import dev.antipode.shim.ReadValue;
import dev.antipode.shim.Server;
import io.opentelemetry.api.trace.Span;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Supplier;

/**
 * A read that dry-run follows: was the server behind, and was what it returned stale (REC-6, REC-12 to REC-15).
 *
 * <p>{@code Read} asks {@link #of} before a read of a store is sent in dry-run, and tells what it got by {@link #returned}.
 * Neither throws, waits, or asks a server.
 */
public final class FollowedRead implements ReadObserver {
  /** Entries of objects that one read is followed for, at most, where the shim does not know which keys it reads. */
  private static final int MOST_OBJECTS = 16;

  private final ObservedStore store;
  private final List<WriteId> ids;
  private final Map<String, Object> head;
  private final Span span;
  private final String site;
  private final BarrierObservation looks; // of the last barrier in its scope; null where there is none
  private Callable<Boolean> differs; // reads again: whether the result is another one now; null where it is not repeated
  // The entry that the value itself is older than, and the value's version; null where it is not.
  private WriteId wanted;
  private Ordered seen;

  private FollowedRead(
      ObservedStore store, List<WriteId> ids, Map<String, Object> head, Span span, String site, BarrierObservation looks) {
    this.looks = looks;
    this.store = store;
    this.ids = ids;
    this.head = head;
    this.span = span;
    this.site = site;
  }

  /**
   * Called before a read of a store in dry-run is sent; null where nothing follows it.
   *
   * @param keys of a store of objects, those that are read; null where nobody knows them
   */
  public static FollowedRead of(ObservedStore store, Collection<Key> keys) {
    try {
      return begin(store, keys);
    } catch (RuntimeException | Error error) {
      cannot(error);
      return null;
    }
  }

  private static void cannot(Throwable error) {
    Logs.warn(
        "AP603",
        "followed read",
        "a read could not be followed: " + error + " at " + Arrays.stream(error.getStackTrace()).limit(2).toList());
  }

  private static FollowedRead begin(ObservedStore store, Collection<Key> keys) {
    Counts.add("reads", "", store.name());
    Records.start();
    Span span = Span.current();
    if (!Records.isSampled(span.getSpanContext())) {
      return null;
    }
    LineageScope scope = LineageScope.current();
    Reading reading = Reading.current();
    Lineage lineage;
    if (reading != null && reading.after().isPresent()) {
      lineage = reading.after().get();
    } else if (scope != null) {
      lineage = scope.held();
    } else {
      return null;
    }
    List<WriteId> ids = lineage.ofStore(store.name()).stream()
        .filter(id -> keys == null || id.isPosition() || keys.stream().anyMatch(key -> isOf(id, key)))
        .limit(MOST_OBJECTS)
        .toList();
    if (ids.isEmpty()) {
      return null;
    }
    String site = CallSite.current();
    Map<String, Object> head = Records.head("behind");
    head.put("site", site);
    head.put("origin", Findings.origin(scope));
    return new FollowedRead(store, ids, head, span, site, BarrierObservation.of(scope));
  }

  private static boolean isOf(WriteId id, Key key) {
    return id.key().equals(key) || id.key().equals(key.hashed());
  }

  @Override
  public void returned(ReadReply reply, WriteId covers) {
    Map<Key, Version> versions = new HashMap<>();
    for (ReadValue each : reply.values()) {
      if (each.version() != null) {
        versions.put(each.key(), each.version().version());
      }
    }
    try {
      end((Server) reply.server(), reply.shown(), reply.again(), versions);
    } catch (RuntimeException | Error error) {
      cannot(error);
    }
  }

  @Override
  public void failed() {
    // it is followed no further
  }

  private void end(Server server, Supplier<?> value, Callable<?> repeat, Map<Key, Version> versions) {
    List<WriteId> missing = ids.stream().filter(id -> !isShown(id, versions)).toList();
    if (missing.stream().allMatch(id -> FollowRegistry.holds(server, id))) {
      count("followed_reads");
      return;
    }
    if (looks != null && looks.hold(server, missing)) {
      head.put("barrier", looks.site());
    }
    if (seen == null && repeat != null && ProcessSettings.inForce().repeatReads()) {
      byte[] digest = Digests.of(value.get());
      differs = digest == null ? null : () -> isAnother(digest, repeat);
    }
    if (FollowRegistry.follow(server, missing, this::followed)) {
      count("followed_reads");
    }
  }

  /** Whether the value that was read is itself this write, or a later one of its object. */
  private boolean isShown(WriteId id, Map<Key, Version> versions) {
    if (id.isPosition()) {
      return false;
    }
    for (Map.Entry<Key, Version> each : versions.entrySet()) {
      if (!isOf(id, each.getKey())) {
        continue;
      }
      if (id.version().equals(each.getValue())) {
        return true;
      }
      if (id.version() instanceof Ordered wrote
          && each.getValue() instanceof Ordered read
          && wrote.epoch().equals(read.epoch())) {
        if (read.compareCounter(wrote.counter()) < 0) {
          wanted = id;
          seen = read;
        }
        return read.compareCounter(wrote.counter()) > 0;
      }
    }
    return false;
  }

  private void count(String what) {
    Counts.add(what, Telemetry.bounded(site), store.name());
  }

  /** Everything is seen, or given up; called by the engine's thread, which must not wait for a repeat. */
  private void followed(List<FollowedWrite> writes) {
    List<FollowedWrite> late = writes.stream().filter(FollowedWrite::isLate).toList();
    if (seen != null) {
      record("stale", writes, "version");
      return;
    }
    if (late.isEmpty()) {
      if (!writes.stream().allMatch(FollowedWrite::wasThereAtOnce)) {
        count("unjudged_reads");
      }
      return;
    }
    boolean allSeen = writes.stream().allMatch(write -> write.visibleAfter() != null);
    if (differs == null || !allSeen || !Repeats.later(differs, found -> compared(late, found))) {
      record("behind", late, null);
    }
  }

  private static boolean isAnother(byte[] before, Callable<?> repeat) throws Exception {
    byte[] now = Digests.of(repeat.call());
    return now != null && !Arrays.equals(now, before);
  }

  private void compared(List<FollowedWrite> late, boolean isAnother) {
    record(isAnother ? "stale" : "behind", late, isAnother ? "repeat" : null);
  }

  private void record(String kind, List<FollowedWrite> writes, String confirmed) {
    count(kind);
    Telemetry.finding(kind, site);
    Map<String, Object> record = new LinkedHashMap<>(head);
    record.put("kind", kind);
    record.put("store", store.name());
    record.put("store_kind", store.kind());
    record.put("server", writes.get(0).server().address());
    record.put("visible_after", FollowedWrite.visibleAfter(writes));
    if (confirmed != null) {
      record.put("confirmed", confirmed);
    }
    Records.event(record, span);
    positions(record, writes);
    Records.put(record);
  }

  /** What was wanted and what was there, of the entry that was seen last; a mark is none of the record's (REC-8). */
  private void positions(Map<String, Object> record, List<FollowedWrite> writes) {
    if (seen != null) {
      record.put("wanted", position((Ordered) wanted.version()));
      record.put("seen", position(seen));
      return;
    }
    FollowedWrite last = writes.get(0);
    for (FollowedWrite each : writes) {
      if (after(each) > after(last)) {
        last = each;
      }
    }
    if (last.writeId().version() instanceof Ordered version) {
      record.put("wanted", position(version));
      if (last.at() != null) {
        record.put("seen", position(new Ordered(version.epoch(), last.at())));
      }
    }
  }

  private static double after(FollowedWrite write) {
    return write.visibleAfter() == null ? Double.POSITIVE_INFINITY : write.visibleAfter();
  }

  private static Map<String, Object> position(Ordered version) {
    Map<String, Object> position = new LinkedHashMap<>();
    position.put("epoch", version.epoch());
    position.put("counter", version.counterText());
    return position;
  }
}
