package dev.antipode.observer;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.ScopeKind;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;

/**
 * A listener to what the lower rooms say: it overrides the events that it wants; the others do nothing.
 *
 * <p>Any thread may call it, also one that holds a scope's lock: it neither waits nor throws, and asks no scope for its
 * lineage. The file {@code META-INF/services/dev.antipode.observer.Observer} of its jar names it.
 */
public interface Observer {
  /** Note that a barrier begins, or that a request came in: the process is at work (OBS-8). */
  default void onWorkBegun() {}

  /** Note that the settings of the process may be others now. */
  default void onSettingsChanged() {}

  /** Note that a scope of this kind was opened. */
  default void onScopeOpened(ScopeKind kind) {}

  /** Note that one scope has what another one depends on (HIST-26). */
  default void onScopeCopied(ObservedScope of, ObservedScope copy) {}

  /** Note that a store has joined this process. */
  default void onStoreJoined(ObservedStore store) {}

  /** Note that a write to this store begins; told where writes note their sites (dry-run). */
  default void onWriteBegun(String store) {}

  /**
   * Return who is told what becomes of a write that is about to be sent; null for nobody. The first observer that wants it
   * is told.
   *
   * @param scope the scope that makes it; null outside any
   * @param lineage what the scope carried then
   */
  default WriteObserver observeWrite(ObservedScope scope, ObservedStore store, Lineage lineage) {
    return null;
  }

  /**
   * Return who is told what a read that is about to be sent returned; null for nobody. Every observer that wants it is told.
   *
   * @param scope the scope that makes it; null outside any
   * @param lineage what the scope carries
   * @param keys of a store of objects, those that are read; null where nobody knows them
   * @param isSure whether it reads, and does nothing else; else it may write, too: a function, several statements
   */
  default ReadObserver observeRead(
      ObservedScope scope, ObservedStore store, Lineage lineage, Collection<Key> keys, boolean isSure) {
    return null;
  }

  /** Return whether a response that adds nothing is told to {@link #observeMessage}, too (HIST-30). */
  default boolean namesMessages() {
    return false;
  }

  /** Return who names a message that is about to leave, and is told with what; null for nobody. The first one is asked. */
  default MessageObserver observeMessage(ObservedScope sender) {
    return null;
  }

  /**
   * Note that a scope has a lineage of a request, message or response, or one that was carried by hand; a value's comes with
   * its read, and a copy's with {@link #onScopeCopied} (HIST-33).
   *
   * @param messages the names of the messages that it came with; none of somebody who names none
   */
  default void onLineageReceived(ObservedScope scope, List<String> messages, Lineage lineage) {}

  /** Note that a lineage was not believed or not understood (OBS-2). */
  default void onLineageDropped(String reason, String direction) {}

  /**
   * Note that a lineage became incomplete in this process.
   *
   * @param reason one of OBS-2
   * @param store what it is incomplete in; empty for anywhere
   * @param scope whose lineage it is; null: of none
   * @param isRecorded whether dry-run makes a record of it (REC-17); it does not where another record says so
   */
  default void onLineageIncomplete(String reason, String store, ObservedScope scope, boolean isRecorded) {}

  /** Note that a lineage which came in was incomplete in this store already (REC-17); told in dry-run alone. */
  default void onIncompleteLineageReceived(String store, ObservedScope scope) {}

  /** Note that a lineage of so many bytes went in this direction. */
  default void onLineageSized(String direction, int length) {}

  /** Note that a scope's lineage leaves with a call to this host (REC-18); told in dry-run alone. */
  default void onLineagePassedOn(ObservedScope scope, String target) {}

  /** Note that a lineage left at this site before the commit of its own task's writes (SCOPE-18). */
  default void onLineageLeftEarly(String site, List<WriteSite> uncommitted) {}

  /** Note that a lineage left while another task's write was in flight (SCOPE-18); told in dry-run alone. */
  default void onWriteConcurrent(String site, WriteSite write) {}

  /** Note that no scope has a write: made outside any ({@code orphan}), or after its scope had ended ({@code closed}). */
  default void onWriteLost(String reason, String store, String site) {}

  /** Note that a write was made after the response's header had left (PROP-16). */
  default void onWriteLate(String store, String site) {}

  /** Note that a fallback read was {@code run} or {@code refused}. */
  default void onFallback(String outcome) {}

  /** Note that a server was asked because somebody waits: {@code wait}, {@code probe} or {@code mark}. */
  default void onServerAsked(String store, String purpose) {}

  /** Note why this process may not mark a store's epochs; null: it may (EPOCH-26). */
  default void onMarksMissing(String store, String reason) {}

  /** Return who is told what becomes of a barrier that nobody waits for (REC-5); null for nobody. The first one is told. */
  default Consumer<FollowedBarrier.Ending> observeBarrier(FollowedBarrier barrier) {
    return null;
  }

  /** Return whether a barrier that waits without a thread notes first where it was called: a walk through the stack. */
  default boolean wantsBarrierSites() {
    return false;
  }

  /** Note that a barrier judged what it was asked about, and passed (REC-26); the free path does not say so. */
  default void onBarrierEnforced() {}

  /** Note what came of a barrier that had to wait (OBS-1). */
  default void onBarrierWaited(WaitedBarrier barrier) {}
}
