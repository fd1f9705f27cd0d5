package dev.antipode;

import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;

/** A future of work that runs in the scope in which it was made. */
final class CarryingTask<T> extends FutureTask<T> {
  private final Carrying carrying = new Carrying();

  CarryingTask(Callable<T> work) {
    super(work);
  }

  @Override
  public void run() {
    try (var in = carrying.enter()) {
      super.run();
    }
  }

  /** Also where it was cancelled and never ran. */
  @Override
  protected void done() {
    carrying.release();
  }
}
