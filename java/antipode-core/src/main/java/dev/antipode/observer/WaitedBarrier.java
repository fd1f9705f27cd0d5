package dev.antipode.observer;

import dev.antipode.BarrierResult;
import dev.antipode.Policy;
import dev.antipode.Reach;
import dev.antipode.Verdict;
import io.opentelemetry.context.Context;
import java.util.List;

/** A barrier that had to wait. Ten thousand may be released at once: what costs time is made when somebody asks for it. */
public interface WaitedBarrier {
  /**
   * What its wait for one store came to.
   *
   * @param store the store's name
   * @param kind the store's kind
   * @param verdict what is known of its writes there
   * @param nanos how long it took
   * @param isSeen whether the last of its servers was seen to have everything then
   */
  record StoreWait(String store, String kind, Verdict verdict, long nanos, boolean isSeen) {}

  /** Return what the caller is told. */
  BarrierResult result();

  /** Return how it ended. */
  Outcome outcome();

  /** Return where its writes had to be visible. */
  Reach reach();

  /** Return whether nothing was enforced. */
  boolean isDryRun();

  /** Return what is done where the time was not enough. */
  Policy onTimeout();

  /** Return the Context of the caller. */
  Context context();

  /** Return where it was called. */
  String site();

  /** Return the waits, of each store where not all was seen at once. */
  List<StoreWait> waits();
}
