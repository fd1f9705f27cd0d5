package dev.antipode.shim;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.OnPending;
import dev.antipode.Settings;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.scope.PendingWriteAccess;
import dev.antipode.internal.scope.UnflushedChanges;
import dev.antipode.observer.Observers;
import java.util.function.Consumer;

/**
 * One write in flight to a store, as it was when it was sent: an unanswered command, an open transaction, an unknown
 * outcome (SCOPE-14). Shims make them.
 */
public final class PendingWrite {
  private final String store;
  private final String site;
  private volatile Thread task = Thread.currentThread();
  private volatile Lineage lineage = Lineage.EMPTY;
  private volatile boolean unknown;

  static {
    PendingWriteAccess.give(PendingWrite::sentWith, PendingWrite::isOf);
  }

  /** A write to this store, made by the calling thread. */
  public PendingWrite(String store) {
    this.store = store;
    this.site = notesSites() ? notedSite(store) : ""; // a walk through the stack costs more than the rest
  }

  /**
   * Have a source say which writes a scope is about to make that no statement has shown yet (SCOPE-27): it is asked in the
   * scope's own threads before a lineage is handed out.
   */
  public static void addSource(Consumer<LineageScope> source) {
    UnflushedChanges.ask(source);
  }

  /** Ask it no more. */
  public static void removeSource(Consumer<LineageScope> source) {
    UnflushedChanges.forget(source);
  }

  /** Whether writes in flight note where they were begun: in dry-run, and with another policy than {@code mark}. */
  private static boolean notesSites() {
    Settings now = ProcessSettings.inForce();
    return now.onPending() != OnPending.MARK || now.mode() == Mode.DRY_RUN;
  }

  private static String notedSite(String store) {
    Observers.events().onWriteBegun(store);
    return CallSite.current();
  }

  /** The store that it goes to. */
  public String store() {
    return store;
  }

  /** Where it was begun; empty where nobody asks for that. */
  public String site() {
    return site;
  }

  /** The scope's lineage when the write was sent: what the write's own position must not be below (LIN-28). */
  public Lineage lineage() {
    return lineage;
  }

  /** Whether its outcome stays unknown: the mark of incompleteness then stays for the life of the scope (SCOPE-17). */
  public boolean isUnknown() {
    return unknown;
  }

  /** Nobody will ever say whether it happened: a broken connection, a timeout. */
  public void outcomeUnknown() {
    unknown = true;
  }

  /** It was sent, and its outcome will be heard of elsewhere: what leaves meanwhile is marked, and no finding (SCOPE-18). */
  public void inFlight() {
    task = null;
  }

  private void sentWith(Lineage now) {
    lineage = now;
  }

  private boolean isOf(Thread thread) {
    return task == thread;
  }
}
