package dev.antipode.testing.conformance;

import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.testing.StoreUnderTest;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A barrier that waits in a thread of its own. */
final class ParkedBarrier {
  private final FutureTask<BarrierResult> work;
  private final Duration patience;

  private ParkedBarrier(FutureTask<BarrierResult> work, Duration patience) {
    this.work = work;
    this.patience = patience;
    Thread thread = new Thread(work, "kit-parked");
    thread.setDaemon(true);
    thread.start();
  }

  static ParkedBarrier judging(StoreUnderTest store, Lineage lineage) {
    return judging(store, lineage, store.patience());
  }

  static ParkedBarrier judging(StoreUnderTest store, Lineage lineage, Duration timeout) {
    return new ParkedBarrier(
        new FutureTask<>(() -> store.judge(lineage, timeout)), timeout.plus(store.slack().multipliedBy(2)));
  }

  boolean isDone() {
    return work.isDone();
  }

  /** What it came to; fails where it does not end. */
  BarrierResult result() {
    try {
      return work.get(patience.toNanos(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException failed) {
      throw new AssertionError("the parked barrier failed", failed.getCause());
    } catch (TimeoutException hangs) {
      throw new AssertionError("the parked barrier does not end", hangs);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted", interrupted);
    }
  }
}
