package dev.antipode.internal.engine;

import dev.antipode.WriteId;
import dev.antipode.shim.Logs;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** The writes of one barrier or read that dry-run follows, with nobody waiting: looked at first, then parked (REC-13). */
final class FollowedWrites {
  private final Set<FollowedWrites> all;
  private final long followFor;
  private final Consumer<List<FollowedWrite>> over;
  private final WaitGroup look;
  private final List<FollowedWrite> writes = new ArrayList<>(2);
  private final CountDownLatch told = new CountDownLatch(1);
  // Under the lock of this:
  private WaitGroup park;
  private boolean ended;
  private Future<?> alarm;

  /** Nobody is asked yet. {@code over} is called once, by whichever thread ends it; it ends by leaving {@code all}. */
  FollowedWrites(Set<FollowedWrites> all, List<StoreRequest> wanted, long followFor, Consumer<List<FollowedWrite>> over) {
    this.all = all;
    this.followFor = followFor;
    this.over = over;
    this.look = new WaitGroup(0, this::looked, true);
    for (StoreRequest asked : wanted) {
      for (ServerEngine server : asked.servers()) {
        for (WriteId id : asked.ids()) {
          writes.add(new FollowedWrite(look.add(id, server)));
        }
      }
    }
  }

  /** What the first look asks for. */
  List<PendingWait> needs() {
    return look.needs;
  }

  /** Whether every server has answered the first look. */
  synchronized boolean hasLooked() {
    return park != null || ended;
  }

  /** Asks the servers; never waits. */
  void start() {
    synchronized (this) {
      alarm = EngineThreads.TIMER.schedule(this::giveUp, followFor, TimeUnit.NANOSECONDS);
    }
    for (PendingWait need : look.needs) {
      need.server.park(need);
    }
    if (!look.parked()) {
      looked();
    }
  }

  /** Every server has answered the first look, or is left out: what was not there is parked. */
  private void looked() {
    boolean waits;
    synchronized (this) {
      if (ended || park != null) {
        return;
      }
      park = new WaitGroup(followFor, this::end, true);
      for (FollowedWrite write : writes) {
        if (write.looked(look.since)) {
          write.park = park.add(write.writeId(), write.look.server);
        }
      }
      for (PendingWait need : park.needs) {
        need.server.park(need);
      }
      waits = park.parked();
    }
    if (!waits) {
      end();
    }
  }

  /** Everything is seen, or nobody follows it any more. */
  private void end() {
    synchronized (this) {
      if (ended) {
        return;
      }
      ended = true;
      if (alarm != null) {
        alarm.cancel(false);
      }
      writes.forEach(write -> write.ended(look.since));
    }
    try {
      over.accept(writes);
    } catch (RuntimeException | LinkageError error) { // never an exception into the engine's thread, or a reader's
      Logs.error("AP601", "a dry-run record could not be made", error);
    } finally {
      all.remove(this);
      told.countDown();
    }
  }

  /** Waits until whoever wanted to know has been told, so long at most. */
  void awaitTold(long millis) {
    try {
      told.await(millis, TimeUnit.MILLISECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Asks no server for it any more: it is recorded as far as it was seen. */
  void giveUp() {
    abandon();
    end();
  }

  /** The same, and nobody is told. */
  void forget() {
    synchronized (this) {
      ended = true;
    }
    all.remove(this);
    abandon();
  }

  private synchronized void abandon() {
    look.cancelled = true;
    ServerWaiting.giveUp(look);
    if (park != null) {
      park.cancelled = true;
      ServerWaiting.giveUp(park);
    }
  }
}
