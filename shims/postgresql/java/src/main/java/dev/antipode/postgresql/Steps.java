package dev.antipode.postgresql;

import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.postgresql.copy.CopyOperation;
import org.postgresql.core.BaseConnection;
import org.postgresql.util.PSQLException;
import org.postgresql.util.PSQLState;

/**
 * The steps on one connection, each from before a statement is sent until its end is known: one at a time, whatever threads use
 * the connection, and none while a COPY runs. The driver does the same, a statement at a time.
 */
final class Steps {
  private static final int LOOK_MS = 20;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition over = lock.newCondition();
  private CopyOperation copy; // the last one that writes

  /** Does one step. */
  <T> T step(BaseConnection physical, Flow.Call<T> call) throws Throwable {
    lock.lock();
    try {
      while (copy != null && copy.isActive() && !physical.isClosed()) {
        over.await(LOOK_MS, TimeUnit.MILLISECONDS);
      }
      return call.run();
    } catch (InterruptedException error) {
      throw interrupted(error);
    } finally {
      lock.unlock();
    }
  }

  private static SQLException interrupted(InterruptedException error) { // as in the driver, which waits likewise
    Thread.currentThread().interrupt();
    return new PSQLException("interrupted while a COPY runs on the connection", PSQLState.OBJECT_NOT_IN_STATE, error);
  }

  /** A COPY that writes has begun: called within its step. */
  void copies(CopyOperation begun) {
    copy = begun;
  }

  /** Does a part of the COPY that runs. */
  <T> T part(Flow.Call<T> call) throws Throwable {
    lock.lock();
    try {
      return call.run();
    } finally {
      over.signalAll();
      lock.unlock();
    }
  }

  /** Begins a step that waits for no other thread; false where one is at work. */
  boolean begins() {
    return lock.tryLock();
  }

  /** The step that was begun is over. */
  void ends() {
    lock.unlock();
  }
}
