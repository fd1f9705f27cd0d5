package dev.antipode.postgresql;

import dev.antipode.UnprovenKind;
import dev.antipode.shim.Visibility;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/**
 * Whether a server has a commit: by how far it has replayed, and by the history that it follows (EPOCH-28).
 *
 * <p>Two proofs, always both: the server has got at least as far, <em>and</em> this position lies in its own history. A
 * comparison of positions alone passes for what a failover lost.
 */
final class CommitJudge {
  private CommitJudge() {}

  /** What one look proves of one position. */
  static Visibility judge(String name, long wanted, ServerState seen) {
    Epoch epoch = Epoch.of(name);
    if (epoch == null) {
      return Visibility.unproven("'" + name + "' is no epoch of PostgreSQL");
    }
    Long settled = seen.settled().get(name);
    if (settled != null && Long.compareUnsigned(wanted, settled) <= 0) {
      return Visibility.VISIBLE;
    }
    if (epoch.system() != seen.system()) {
      return Visibility.unknownEpoch(
          "it is another system (a logical replica, a restored dump, a cluster of its own): positions of " + name
              + " mean nothing there");
    }
    if (seen.histories().isEmpty()) {
      return Visibility.unproven("its timeline cannot be known: " + seen.whyHidden());
    }
    List<Visibility> bad = new ArrayList<>();
    for (History history : seen.histories()) {
      Visibility answer = judgeIn(epoch, wanted, history, seen);
      if (answer.isUnproven()) {
        bad.add(answer);
      } else if (!answer.isVisible()) {
        return answer;
      }
    }
    if (bad.isEmpty()) {
      return Visibility.VISIBLE;
    }
    if (bad.size() < seen.histories().size()) {
      return Visibility.unanswered(
          "its receiver is down, and it may be on another timeline: " + bad.get(0).reason());
    }
    return bad.get(0);
  }

  private static Visibility judgeIn(Epoch epoch, long wanted, History history, ServerState seen) {
    if (epoch.timeline() > history.timeline()) {
      return Visibility.unknownEpoch(
          "on timeline " + history.timeline() + ", wanted timeline " + epoch.timeline());
    }
    OptionalLong end = history.endOf(epoch.timeline());
    if (end.isEmpty()) {
      return Visibility.unproven("timeline " + epoch.timeline() + " is no part of the history of its timeline "
          + history.timeline(), UnprovenKind.HISTORY);
    }
    if (Long.compareUnsigned(wanted, end.getAsLong()) > 0) {
      return Visibility.unproven("timeline " + epoch.timeline() + " ended there at " + Lsn.text(end.getAsLong())
          + ", wanted " + Lsn.text(wanted) + ": it may be lost", UnprovenKind.HISTORY);
    }
    Visibility other = otherBranch(epoch, wanted, seen);
    if (other != null) {
      return other;
    }
    if (Long.compareUnsigned(seen.reached(), wanted) >= 0) {
      return Visibility.VISIBLE;
    }
    return Visibility.notYet("at " + Lsn.text(seen.reached()) + " of timeline " + history.timeline() + ", wanted "
        + Lsn.text(wanted));
  }

  /** Whether the server's timeline of this number is another one: two standbys that were promoted apart. */
  private static Visibility otherBranch(Epoch epoch, long wanted, ServerState seen) {
    String word = seen.wordOf(epoch.timeline());
    boolean certain = epoch.timeline() == 1 || seen.uniqueTimelines();
    if (word.equals(epoch.word())) {
      if (!word.isEmpty() || certain) {
        return null;
      }
      return Visibility.unproven("nothing tells timeline " + epoch.timeline()
          + " from another one of that number: run antipode init, or say unique_timelines=True where all servers share"
          + " one archive of the log", UnprovenKind.RIGHT);
    }
    if (epoch.word().isEmpty()) {
      return certain
          ? null
          : Visibility.unproven(
              "written before the table of epochs was there, in timeline " + epoch.timeline(), UnprovenKind.HISTORY);
    }
    if (!word.isEmpty()) {
      return Visibility.unproven(
          "its timeline " + epoch.timeline() + " is another one: they were promoted apart", UnprovenKind.HISTORY);
    }
    if (Long.compareUnsigned(seen.reached(), wanted) < 0 || !seen.wordsFresh()) {
      return Visibility.notYet("at " + Lsn.text(seen.reached()) + ", wanted " + Lsn.text(wanted));
    }
    return Visibility.unproven("the row of " + epoch + " in antipode.epochs is not there: it is on another branch, or"
        + " without that table (antipode init)", UnprovenKind.HISTORY);
  }
}
