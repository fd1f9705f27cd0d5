package dev.antipode.internal.scope;

import dev.antipode.Lineage;
import dev.antipode.Mode;
import dev.antipode.OnPending;
import dev.antipode.PendingWriteException;
import dev.antipode.Settings;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.model.Display;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.observer.Observers;
import dev.antipode.observer.WriteSite;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.Logs;
import dev.antipode.shim.PendingWrite;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;

/** Says what scopes lose, and what leaves them too early: counted, and logged with its site. */
public final class ScopeLog {
  private static volatile boolean knowsLineages;

  /** The write that began outside any scope before anything else was known, if that is all there is. */
  private static final AtomicReference<Object> FIRST = new AtomicReference<>();

  private ScopeLog() {}

  /** Notes that this process has known a lineage: what it sends outside any scope may depend on one (SCOPE-31). */
  public static void knowLineage() {
    if (!knowsLineages) {
      knowsLineages = true;
    }
  }

  /** The same, where this is not empty. */
  public static void know(Lineage lineage) {
    if (lineage.hasContent()) {
      knowLineage();
    }
  }

  /** Notes that a write began outside any scope: what leaves before its end may depend on it. */
  public static void beginOutside(Object write) {
    if (!knowsLineages && !FIRST.compareAndSet(null, write)) {
      knowLineage();
      FIRST.set(null);
    }
  }

  /** Begins as a process that has known none (tests). */
  public static void forgetLineages() {
    knowsLineages = false;
    FIRST.set(null);
  }

  /**
   * Returns what leaves outside any scope: empty, and incomplete where this process has known lineages (SCOPE-31). What is
   * incomplete is counted, and said once a site.
   *
   * @param direction what leaves, in words
   * @param but a write that makes no lineage known here (SCOPE-32); null for none
   */
  public static Lineage lineageOutside(String direction, Object but) {
    Object first = FIRST.get();
    if ((!knowsLineages && (first == null || first == but)) || ProcessSettings.inForce().mode() == Mode.OFF) {
      return Lineage.EMPTY;
    }
    String where = CallSite.current();
    Observers.events().onLineageIncomplete("unscoped", "", null, true);
    Logs.warn(
        "AP418",
        "unscoped " + where,
        "what left outside any scope (" + direction + ") is marked incomplete: nobody knows what it depends on. Hand the "
            + "scope to the thread with Antipode.carry(), or open one: with Antipode.scope() what begins here depends on "
            + "nothing before it. site=" + where);
    return Lineage.EMPTY.markedIncomplete();
  }

  /**
   * Returns what is to rest beside a value that is written outside any scope: it may be incomplete (SCOPE-32).
   *
   * @param lineageOut whether lineages are given to values here
   * @param write the value's own, where it has begun; null before
   */
  public static Lineage lineageBesideOutside(boolean lineageOut, Object write) {
    boolean rests = Judgement.messageOut(TrustSettings.inForce(), lineageOut ? null : Boolean.FALSE).accepted();
    return rests ? lineageOutside("value out", write) : Lineage.EMPTY; // where nothing rests nothing is told as lost
  }

  /** A write that no scope records (SCOPE-9). */
  public static void orphan(String store) {
    knowLineage();
    String where = CallSite.current();
    Observers.events().onWriteLost("orphan", store, where);
    Logs.warn(
        "AP401",
        "orphan " + where,
        "a write to " + Display.shown(store) + " was made outside any scope, so nothing can wait for it. Open one with a "
            + "middleware or Antipode.scope(); in a thread use Antipode.carry(). site=" + where);
  }

  /** A write to a scope that has ended (SCOPE-4). */
  public static void tooLate(String store, String scopesSite) {
    knowLineage();
    String where = CallSite.current();
    Observers.events().onWriteLost("closed", store, where);
    Logs.warn(
        "AP402",
        "closed-scope " + where,
        "dropped a write to " + (store.isEmpty() ? "a store" : Display.shown(store)) + ": its scope (" + scopesSite + ") has "
            + "ended. For work that outlives the request use Antipode.detachedScope(). site=" + where);
  }

  /** A write after the response's header had left (PROP-16). */
  public static void afterHeader(String store) {
    Observers.events().onWriteLate(store, CallSite.current());
  }

  /**
   * A lineage leaves while writes of its scope are in flight: those of this task are not committed yet (SCOPE-18), those of
   * others are no violation.
   *
   * @throws PendingWriteException with {@code on_pending=raise}
   */
  public static void leaving(List<PendingWrite> uncommitted, List<PendingWrite> all) {
    if (!uncommitted.isEmpty()) {
      published(uncommitted);
    }
    if (ProcessSettings.inForce().mode() == Mode.DRY_RUN) {
      String where = CallSite.current();
      all.stream()
          .filter(write -> !uncommitted.contains(write) && !write.isUnknown())
          .forEach(write -> Observers.events().onWriteConcurrent(where, new WriteSite(write.store(), write.site())));
    }
  }

  /**
   * A lineage leaves before the commit of this task's own writes: the commonest form of the bug (SCOPE-18, SCOPE-19).
   *
   * @throws PendingWriteException with {@code on_pending=raise}
   */
  private static void published(List<PendingWrite> uncommitted) {
    String where = CallSite.current();
    String names = uncommitted.stream().map(PendingWrite::store).distinct().sorted().collect(Collectors.joining(", "));
    Settings now = ProcessSettings.inForce();
    boolean dryRun = now.mode() == Mode.DRY_RUN;
    Observers.events().onLineageLeftEarly(
        where, uncommitted.stream().map(write -> new WriteSite(write.store(), write.site())).toList());
    if (now.onPending() == OnPending.RAISE) {
      throw new PendingWriteException(
          "a lineage leaves before the commit of " + names + ": readers cannot wait for it. Publish after commit. (site: "
              + where + ")");
    }
    if (now.onPending() == OnPending.WARN || dryRun) {
      Logs.warn(
          "AP115",
          "pending " + where,
          "sent a lineage before the commit of " + names + ": readers cannot wait for it. Publish after commit. site="
              + where);
    }
  }
}
