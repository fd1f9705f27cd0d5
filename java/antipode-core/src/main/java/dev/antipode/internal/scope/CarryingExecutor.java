package dev.antipode.internal.scope;

import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.RunnableFuture;
import java.util.concurrent.TimeUnit;

/** An executor whose work runs in the scope in which it was submitted. */
public final class CarryingExecutor extends AbstractExecutorService {
  private final ExecutorService inner;

  /** Run work in the scope in which it is submitted to this executor. */
  public CarryingExecutor(ExecutorService inner) {
    this.inner = inner;
  }

  // Submitted and invoked work becomes such a task, in the thread that submits it.

  @Override
  protected <T> RunnableFuture<T> newTaskFor(Runnable task, T value) {
    return CarryingTask.of(() -> {
      task.run();
      return value;
    });
  }

  @Override
  protected <T> RunnableFuture<T> newTaskFor(Callable<T> task) {
    return CarryingTask.of(task);
  }

  @Override
  public void execute(Runnable task) {
    CarryingTask<?> carried = task instanceof CarryingTask<?> made ? made : null;
    Runnable run = carried != null ? carried : ContextTransfer.of(task);
    try {
      inner.execute(run);
    } catch (RejectedExecutionException e) {
      if (carried != null) {
        carried.cancel(false); // a detached scope must not be held for work that never runs
      }
      throw e;
    }
  }

  @Override
  public void shutdown() {
    inner.shutdown();
  }

  @Override
  public List<Runnable> shutdownNow() {
    return inner.shutdownNow();
  }

  @Override
  public boolean isShutdown() {
    return inner.isShutdown();
  }

  @Override
  public boolean isTerminated() {
    return inner.isTerminated();
  }

  @Override
  public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
    return inner.awaitTermination(timeout, unit);
  }
}
