package dev.antipode.internal.scope;

import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;

/** A future of work that runs in the scope in which it was made. */
final class CarryingTask<T> extends FutureTask<T> {
  private final ContextTransfer carrying;

  private CarryingTask(Callable<T> work, ContextTransfer carrying) {
    super(work);
    this.carrying = carrying;
  }

  static <T> CarryingTask<T> of(Callable<T> work) {
    ContextTransfer carrying = new ContextTransfer();
    // Inside, so that the scope is left before anybody sees the result.
    return new CarryingTask<>(() -> {
      try (var in = carrying.enter()) {
        return work.call();
      }
    }, carrying);
  }

  /** Also where it was cancelled and never ran. */
  @Override
  protected void done() {
    carrying.release();
  }
}
