package dev.antipode.observer;

import dev.antipode.Reach;
import dev.antipode.Verdict;
import java.util.Collection;
import java.util.List;

/** A barrier that nobody waits for: what was not visible is followed until it is (REC-5). */
public interface FollowedBarrier {
  /**
   * What was seen of one store.
   *
   * @param store the store's name
   * @param kind the store's kind; null where this process has not registered it, and nothing was looked for
   * @param verdict what a barrier would have found
   * @param servers where it was looked for
   * @param visibleAfter seconds until the last write was seen; null where one was not
   */
  record StoreLook(String store, String kind, Verdict verdict, Collection<String> servers, Double visibleAfter) {}

  /**
   * What a barrier would have said without waiting.
   *
   * @param isSatisfied whether all was there
   * @param isComplete whether all was judged, too
   * @param stores by store
   */
  record Ending(boolean isSatisfied, boolean isComplete, List<StoreLook> stores) {}

  /** Return where it was called. */
  String site();

  /** Return the scope that it was called in; null outside any. */
  ObservedScope scope();

  /** Return where its writes had to be visible. */
  Reach reach();

  /** Return whether it has nothing to judge. */
  boolean isVacuous();

  /** Return the stores of its lineage that this process does not know. */
  List<String> elsewhere();
}
