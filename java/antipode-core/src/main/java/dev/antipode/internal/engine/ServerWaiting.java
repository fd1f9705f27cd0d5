package dev.antipode.internal.engine;

import dev.antipode.BarrierInterruptedException;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Visibility;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Waiting for writes at servers: places, deadlines, giving up (BAR-28, BAR-32, BAR-39). */
final class ServerWaiting {
  /** How long a look without waiting may take to ask the servers, in nanoseconds. */
  private static volatile long look = TimeUnit.MILLISECONDS.toNanos(100);

  private ServerWaiting() {}

  /**
   * Blocks until a barrier's writes are settled at the servers that are known then, or its deadline has passed.
   *
   * @throws BarrierInterruptedException where the thread is interrupted while it waits; its flag is set again
   */
  static BarrierWaits block(Plan plan) {
    BarrierWaits waits = new BarrierWaits(plan);
    WaitGroup group;
    do {
      CountDownLatch done = new CountDownLatch(1);
      group = block(waits.begin(done::countDown), waits.plan().asked(), done);
    } while (!waits.take(group));
    return waits;
  }

  /** Blocks until every write is settled at its servers, or {@code timeout} nanoseconds have passed; throws likewise. */
  static WaitGroup block(List<StoreRequest> wanted, long timeout) {
    CountDownLatch done = new CountDownLatch(1);
    return block(new WaitGroup(timeout, done::countDown), wanted, done);
  }

  private static WaitGroup block(WaitGroup group, List<StoreRequest> wanted, CountDownLatch done) {
    boolean whole = false;
    try {
      if (park(group, wanted)) {
        Map<RegisteredStore, Integer> places = takePlaces(group, false);
        if (places != null) {
          try {
            done.await(patience(group), TimeUnit.NANOSECONDS);
          } finally {
            giveBack(places, false);
          }
        }
      }
      whole = true;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new BarrierInterruptedException("the thread was interrupted while a barrier waited", interrupted);
    } finally {
      group.cancelled = !whole;
      giveUp(group);
    }
    return group;
  }

  /** Parks every write at its servers; true where something is to be waited for. */
  static boolean park(WaitGroup group, List<StoreRequest> wanted) {
    long until = group.since + (group.timeout > 0 ? group.timeout : look);
    for (StoreRequest asked : wanted) {
      for (ServerEngine server : asked.servers()) {
        for (WriteId id : asked.ids()) {
          PendingWait need = group.add(id, server);
          if (Ticks.now() < until) { // the deadline holds while it is being parked, too (BAR-60)
            server.park(need);
          }
        }
      }
    }
    return group.parked()
        && group.open().stream().noneMatch(group::endWithout); // what left before it was parked there, nobody else sees (BAR-65)
  }

  /** Nanoseconds until the deadline; a look without waiting still asks each server once. */
  static long patience(WaitGroup group) {
    return Math.max(group.since + (group.timeout > 0 ? group.timeout : look) - Ticks.now(), 0);
  }

  /** What is not settled by now is not waited for any more. */
  static void giveUp(WaitGroup group) {
    group.end().forEach(need -> need.server.giveUp(need));
  }

  /** Places among those that wait, counted a store and process; null where all are taken (BAR-39, BAR-60). */
  static Map<RegisteredStore, Integer> takePlaces(WaitGroup group, boolean tasks) {
    Settings now = ProcessSettings.inForce();
    int limit = tasks ? now.maxTasks() : now.maxWaiters();
    Map<ServerEngine, Integer> entries = new HashMap<>();
    group.needs.stream().filter(need -> !need.isDone()).forEach(need -> entries.merge(need.server, 1, Integer::sum));
    Map<RegisteredStore, Integer> wanted = new HashMap<>();
    entries.forEach((server, count) -> wanted.merge(server.store(), count, Math::max));
    Map<RegisteredStore, Integer> taken = new HashMap<>();
    for (Map.Entry<RegisteredStore, Integer> each : wanted.entrySet()) {
      if (!each.getKey().takePlace(limit, each.getValue(), tasks)) {
        giveBack(taken, tasks);
        overloaded(group);
        return null;
      }
      taken.put(each.getKey(), each.getValue());
    }
    return taken;
  }

  /** The barrier is parked no more. */
  static void giveBack(Map<RegisteredStore, Integer> places, boolean tasks) {
    places.forEach((store, entries) -> store.givePlaceBack(entries, tasks));
  }

  private static void overloaded(WaitGroup group) {
    group.overloaded = true;
    Visibility answer = Visibility.notYet("overloaded: as many barriers wait for it as this process allows");
    for (PendingWait need : group.end()) {
      need.server.giveUp(need); // first: what is over, no answer changes any more
      need.answer = answer;
      need.overloaded = true;
    }
  }

  /** Sets how long a look may take; returns what it was, in nanoseconds (tests). */
  static long lookFor(long nanos) {
    long before = look;
    look = nanos;
    return before;
  }
}
