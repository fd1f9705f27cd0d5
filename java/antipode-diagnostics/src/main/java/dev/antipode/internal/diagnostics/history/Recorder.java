package dev.antipode.internal.diagnostics.history;

import dev.antipode.Lineage;
import dev.antipode.internal.base.HostName;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Line;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Step;
import dev.antipode.internal.diagnostics.history.HistoryOrder.Strand;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.MessageObserver;
import dev.antipode.observer.ObservedScope;
import dev.antipode.observer.ObservedStore;
import dev.antipode.shim.Logs;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Records a history: what this process's scopes write, read, send and receive (HIST-23 to HIST-34). Nothing here throws, and
 * nothing waits for a disk.
 */
public final class Recorder {
  private static final long EXIT_MILLIS = 5000;
  private static final int MOST_ENDINGS = 3;
  private static final int LONGEST_NAME = 900; // of 1,024 characters, with what is added
  private static final ReentrantLock OPENING = new ReentrantLock();
  private static final AtomicReference<Recorder> CURRENT = new AtomicReference<>();
  private static final AtomicBoolean HOOKED = new AtomicBoolean();

  private final String folder;
  private final HistoryWriter writer;
  private final ReentrantLock lock = new ReentrantLock();

  // Under the lock
  private final HistoryOrder order;
  private final Map<ObservedScope, Strand> strands = new WeakHashMap<>();
  private final Set<String> unread = new HashSet<>();
  private long scopes;
  private long put;

  private Recorder(String folder) {
    this.folder = folder;
    byte[] random = new byte[4];
    new SecureRandom().nextBytes(random);
    String tag = HexFormat.of().formatHex(random);
    String host = HostName.own();
    long pid = ProcessHandle.current().pid();
    String named = System.getenv("OTEL_SERVICE_NAME");
    String service = named == null || named.isEmpty() ? host : named;
    if (service.length() > LONGEST_NAME) {
      service = service.substring(0, LONGEST_NAME);
    }
    String file = String.format(Locale.ROOT, "%s-%d-%d-%s.jsonl", host, pid, System.currentTimeMillis() / 1000, tag);
    writer = new HistoryWriter(Path.of(folder, file), this::lockedGap);
    order = new HistoryOrder(service + ":" + pid + ":" + tag, tag + "z", this::put);
    put(order.line("begin", "recording", "", Map.of()));
  }

  // For shims and the core

  /** The recording in force; null where there is none: no more than a look at the setting. */
  public static Recorder current() {
    String folder = ProcessSettings.inForce().history();
    if (folder.isEmpty()) {
      return null;
    }
    Recorder found = CURRENT.get();
    return found != null && found.folder.equals(folder) ? found : opened(folder);
  }

  /** Whether anything is recorded now. */
  public static boolean isOn() {
    return !ProcessSettings.inForce().history().isEmpty();
  }

  /** The settings are others: a store may be off from now on, or for a while (HIST-31). */
  public static void lookAtStores() {
    Recorder found = CURRENT.get();
    if (found != null && found.folder.equals(ProcessSettings.inForce().history())) {
      Registry.current().all().forEach(found::notRead);
    }
  }

  // What they tell

  WriteEvent write(ObservedScope scope, ObservedStore store, Lineage lineage) {
    notRead(store);
    Step step = begun(scope, lineage);
    return step == null ? null : new WriteEvent(this, store, step);
  }

  ReadEvent read(ObservedScope scope, ObservedStore store, Lineage lineage) {
    Step step = begun(scope, lineage);
    return step == null ? null : new ReadEvent(this, store, step);
  }

  private Step begun(ObservedScope scope, Lineage lineage) {
    Step[] step = {null};
    safely(() -> step[0] = order.begin(scope == null ? newStrand("no scope") : strand(scope), lineage));
    return step[0];
  }

  /** A message is about to leave: it has a name, and is recorded with the lineage that leaves. */
  MessageObserver message(ObservedScope scope) {
    String name = newMessage();
    return new MessageObserver() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public void sent(Lineage lineage) {
        safely(() -> order.instant(strand(scope), "send", lineage, name));
      }
    };
  }

  /** Messages came with a lineage that names them; or, with no name, a lineage of somebody who records nothing. */
  void received(ObservedScope scope, List<String> messages, Lineage lineage) {
    safely(() -> {
      Strand strand = strand(scope);
      messages.forEach(message -> order.instant(strand, "receive", null, message));
      if (messages.isEmpty()) {
        order.instant(strand, "receive", lineage, "stranger-" + order.newId());
      }
    });
  }

  /** What one scope depends on goes into another of this process. */
  void joined(ObservedScope ended, ObservedScope scope) {
    safely(() -> order.joined(strand(ended), strand(scope)));
  }

  /** Says once of a store that its reads are not recorded, which may hide violations (HIST-31). */
  void notRead(ObservedStore store) {
    boolean records = store.records();
    if (store.isTapped() || store.notesReads() && records) {
      return;
    }
    safely(() -> {
      if (unread.add(store.name())) {
        String why = records ? store.kind() : "its mode is off";
        put(gap("reads of " + store.name() + " are not recorded (" + why + ")", 0));
      }
    });
  }

  private String newMessage() {
    lock.lock();
    try {
      return order.newId();
    } finally {
      lock.unlock();
    }
  }

  void finish(Step step, List<Line> lines, boolean certain) {
    safely(() -> order.end(step, lines, certain));
  }

  // Within

  private Strand strand(ObservedScope scope) {
    return strands.computeIfAbsent(scope, added -> newStrand(added.kind().word()));
  }

  private Strand newStrand(String kind) {
    scopes++;
    SpanContext context = Span.current().getSpanContext();
    return new Strand(kind + " " + scopes, context.isValid() ? context.getTraceId() : "");
  }

  private void put(Map<String, Object> line) {
    put++;
    writer.put(line);
  }

  private Map<String, Object> gap(String reason, long count) {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("reason", reason);
    if (count > 0) {
      fields.put("count", count);
    }
    return order.line("gap", "recording", "", fields);
  }

  private Map<String, Object> lockedGap(String reason, long count) {
    lock.lock();
    try {
      return gap(reason, count);
    } finally {
      lock.unlock();
    }
  }

  /** Recording never throws into the application; what went wrong is a gap of the history (HIST-24). */
  private void safely(Runnable work) {
    try {
      lock.lock();
      try {
        work.run();
      } finally {
        lock.unlock();
      }
    } catch (RuntimeException | LinkageError error) {
      failed(error);
    }
  }

  /** What else a shim could not tell. */
  public void failed(Throwable error) {
    try {
      Logs.warn("AP602", "history recorder", "an operation could not be recorded: " + error);
      writer.put(lockedGap("an operation could not be recorded", 1));
    } catch (RuntimeException again) {
      Logs.error("AP602", "nor could that be said", again);
    }
  }

  // Beginning and ending it

  private static Recorder opened(String folder) {
    OPENING.lock();
    try {
      Recorder found = CURRENT.get();
      if (found != null && found.folder.equals(folder)) {
        return found;
      }
      if (found != null) {
        found.finish();
      }
      Recorder opened = new Recorder(folder);
      CURRENT.set(opened);
      hook();
      Registry.current().all().forEach(opened::notRead);
      return opened;
    } catch (RuntimeException error) { // a folder's name that is none
      Logs.warn("AP602", "history recorder", "no history is recorded: " + error);
      return null;
    } finally {
      OPENING.unlock();
    }
  }

  private static void hook() {
    if (HOOKED.compareAndSet(false, true)) {
      try {
        Runtime.getRuntime().addShutdownHook(new Thread(Recorder::end, "antipode-history-end"));
      } catch (IllegalStateException ending) { // the process ends already
        Logs.warn("AP602", "history recorder", "the process ends already: its history will have no end.");
      }
    }
  }

  /** The process ends: what was recorded is on disk, and its file says that it is whole (HIST-25). Takes some seconds at most. */
  public static void end() {
    Recorder recorder = CURRENT.get();
    if (recorder != null) {
      recorder.finish();
    }
  }

  /** Says the end; again where other hooks of the ending process go on with their work meanwhile. */
  private void finish() {
    for (int ending = 0; ending < MOST_ENDINGS; ending++) {
      lock.lock();
      long last;
      try {
        put(order.line("end", "recording", "", Map.of()));
        last = put;
      } finally {
        lock.unlock();
      }
      writer.flush(EXIT_MILLIS / MOST_ENDINGS);
      lock.lock();
      try {
        if (put == last) {
          return;
        }
      } finally {
        lock.unlock();
      }
    }
  }

  /** Waits until what was recorded so far is on disk (tests). */
  public static void flush() {
    Recorder recorder = CURRENT.get();
    if (recorder != null) {
      recorder.writer.flush(EXIT_MILLIS);
    }
  }

  /** Ends the recording; the next one is another (tests). */
  public static void forget() {
    Recorder recorder = CURRENT.getAndSet(null);
    if (recorder != null) {
      recorder.finish();
    }
  }
}
