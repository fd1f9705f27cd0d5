package dev.antipode.barrier;

import dev.antipode.WriteId;
import dev.antipode.shim.Visibility;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** The needs of one barrier. It is over when every need is settled, or when the barrier gives up. */
final class Group {
  /** Nanoseconds; zero looks without waiting. */
  final long timeout;

  final long since = Ticks.now();
  volatile List<Need> needs = new ArrayList<>(2); // replaced, where it grows behind the parking

  /** The barrier was cancelled or interrupted: nobody goes on asking for it. */
  volatile boolean cancelled;

  /** It only records when the writes are seen: nobody waits for them (dry-run). */
  final boolean follows;

  /** All places for waiting were taken. */
  boolean overloaded;

  private final Runnable onRelease;
  private boolean isOver; // under the lock of this
  private final AtomicInteger left = new AtomicInteger(1); // one for the barrier itself, until all is parked

  /** {@code onRelease} is called once, by a thread of the engine, without any lock. */
  Group(long timeout, Runnable onRelease) {
    this(timeout, onRelease, false);
  }

  /** The same; {@code follows}: nobody waits for it. */
  Group(long timeout, Runnable onRelease, boolean follows) {
    this.timeout = timeout;
    this.onRelease = onRelease;
    this.follows = follows;
  }

  /** One more need; to be parked at its server. */
  synchronized Need add(WriteId writeId, ServerEngine server) {
    Need need = new Need(writeId, server, this);
    needs.add(need);
    left.incrementAndGet();
    return need;
  }

  /** The needs that stand for this one at the servers that it waited to know; none where its barrier is over. */
  synchronized List<Need> divide(Need need, Collection<ServerEngine> servers) {
    if (isOver || need.isDone()) {
      return List.of();
    }
    need.divided = true;
    List<Need> found = servers.stream().map(server -> new Need(need.writeId, server, this)).toList();
    List<Need> all = new ArrayList<>(needs);
    all.addAll(found);
    needs = all;
    left.addAndGet(found.size());
    return found;
  }

  /** The barrier is over: what is not settled; nothing is added any more. */
  synchronized List<Need> end() {
    isOver = true;
    return needs.stream().filter(need -> !need.isDone()).toList();
  }

  /** Everything is parked; true if something is still to be waited for. */
  boolean parked() {
    return left.decrementAndGet() != 0;
  }

  /**
   * A need is over, one way or another; true where it was the last one and the group is to be released. With the
   * lock of the need's server held.
   */
  boolean settle(Need need, Visibility answer) {
    if (need.isDone()) {
      return false;
    }
    need.finish(answer);
    return left.decrementAndGet() == 0;
  }

  /** Wakes the barrier. */
  void release() {
    onRelease.run();
  }

  /** Wakes the barriers. */
  static void releaseAll(List<Group> groups) {
    for (Group group : groups) {
      group.release();
    }
  }

  /** Whether every need was seen. */
  boolean allVisible() {
    for (Need need : needs) {
      if (!need.isVisible()) {
        return false;
      }
    }
    return true;
  }

  /** Whether anything had to be waited for. */
  boolean waited() {
    for (Need need : needs) {
      if (need.parked) {
        return true;
      }
    }
    return false;
  }
}
