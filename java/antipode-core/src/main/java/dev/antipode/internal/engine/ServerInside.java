package dev.antipode.internal.engine;

import dev.antipode.internal.base.Ticks;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/** What a server's engine and the thread that asks the server share. */
final class ServerInside {
  /** How long a server is asked on after the last barrier, in nanoseconds (BAR-37). */
  static volatile long linger = TimeUnit.SECONDS.toNanos(10);

  final RegionStore store;
  final String address;
  final ServerProofs proofs = new ServerProofs();
  final Reachability reach = new Reachability();
  final ReentrantLock lock = new ReentrantLock();
  final WaitQueue waiters = new WaitQueue(linger); // guarded by the lock
  long wantedAt = Ticks.LONG_AGO; // guarded by the lock
  boolean hurried; // likewise: somebody has waited since the thread began, and not only followed writes for records

  /** For how many nanoseconds it is behind the store's other servers, as far as they were seen (BAR-57). */
  long lag(long now) {
    Proofs known = proofs.now();
    Long reached = known.current();
    return reached == null ? 0 : store.ages().lag(known.epoch(), reached, now);
  }

  ServerInside(RegionStore store, String address) {
    this.store = store;
    this.address = address;
  }
}
