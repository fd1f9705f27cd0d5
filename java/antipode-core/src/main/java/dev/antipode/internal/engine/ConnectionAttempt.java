package dev.antipode.internal.engine;

import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Logs;
import dev.antipode.shim.Server;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A connection that a thread opens beside the one that answers (BAR-69). */
final class ConnectionAttempt implements Runnable {
  private final Server server;
  private final CountDownLatch over = new CountDownLatch(1);
  private volatile long beganAt = Ticks.now();
  private volatile long time;
  // Under the lock of this:
  private AutoCloseable session;
  private boolean isGivenUp;

  ConnectionAttempt(Server server) {
    this.server = server;
  }

  /** Opens it, and closes it again where nobody wants it any more. */
  @Override
  public void run() {
    AutoCloseable made = null;
    try {
      made = server.store().shim().renew(server);
    } catch (Throwable error) { // the connection that answers does so still
      made = null;
    } finally {
      end(made);
    }
  }

  /** Note what was opened; null for none. */
  void end(AutoCloseable made) {
    boolean isUnwanted;
    synchronized (this) {
      session = made;
      time = Ticks.now() - beganAt;
      isUnwanted = isGivenUp;
    }
    over.countDown();
    if (isUnwanted) {
      close();
    }
  }

  /** Wait so long at most until it is over. */
  void await(long nanos) {
    long until = Ticks.now() + nanos;
    for (long left = nanos; left > 0 && !isOver(); left = until - Ticks.now()) {
      try {
        over.await(left, TimeUnit.NANOSECONDS);
      } catch (InterruptedException error) { // nobody has a reason to: a shim's leftover
        continue;
      }
    }
  }

  /** Return whether it stands, or failed. */
  boolean isOver() {
    return over.getCount() == 0;
  }

  /** Return when it began to be opened. */
  long beganAt() {
    return beganAt;
  }

  /** Return how long that took. */
  long time() {
    return time;
  }

  /** Return what was opened, once; null where it is not over, or failed. */
  synchronized AutoCloseable take() {
    AutoCloseable taken = session;
    session = null;
    return taken;
  }

  /** Have it closed, as soon as it is over. */
  void giveUp() {
    synchronized (this) {
      isGivenUp = true;
    }
    close();
  }

  private void close() {
    AutoCloseable unwanted = take();
    if (unwanted == null) {
      return;
    }
    try {
      unwanted.close();
    } catch (Exception error) { // a shim's defect
      Logs.error("AP209", "giving up a connection to " + server.address() + " failed", error);
    }
  }

  /** Let it have begun then (tests). */
  void beganAt(long then) {
    beganAt = then;
  }
}
