package dev.antipode.barrier;

import dev.antipode.BarrierResult;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.telemetry.CallSite;
import dev.antipode.telemetry.Telemetry;
import io.opentelemetry.context.Context;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** A barrier that waits without a thread. It completes once, and gives its place up when it is cancelled (BAR-32). */
final class BarrierFuture extends CompletableFuture<BarrierResult> {
  private enum State {
    STARTING,
    WAITING,
    OVER
  }

  private final Plan plan;
  private final Executor executor;
  private final Context context = Context.current();
  private final String site;
  private final Group group;
  private final AtomicReference<State> state = new AtomicReference<>(State.STARTING);
  private Map<RegisteredStore, Integer> places;
  private Future<?> alarm;

  private BarrierFuture(Plan plan, Executor executor) {
    this.plan = plan;
    this.executor = executor == null ? EngineThreads.FUTURES : executor;
    this.site = Telemetry.isCollected() ? CallSite.current() : null;
    this.group = new Group(plan.timeout(), this::over);
    this.group.looksTwice = plan.looksTwice();
  }

  /** Begins to wait. */
  static CompletableFuture<BarrierResult> start(Plan plan, Executor executor) {
    BarrierFuture future = new BarrierFuture(plan, executor);
    future.begin();
    return future;
  }

  private void begin() {
    if (Waiting.park(group, plan.asked())) {
      places = Waiting.takePlaces(group, true);
      if (places != null) {
        // Everything that ends the wait reads these two after the state has left STARTING.
        alarm = EngineThreads.TIMER.schedule(this::over, Waiting.patience(group), TimeUnit.NANOSECONDS);
        whenComplete((result, error) -> abandon());
        if (state.compareAndSet(State.STARTING, State.WAITING)) {
          return;
        }
      }
    }
    state.set(State.OVER);
    finish();
  }

  /** Everything is settled, or the deadline has passed. */
  private void over() {
    if (state.compareAndSet(State.STARTING, State.OVER) || !state.compareAndSet(State.WAITING, State.OVER)) {
      return; // `begin` finishes it, or it is over already
    }
    try {
      executor.execute(this::finish);
    } catch (RejectedExecutionException ended) { // the application's executor; the future still completes
      EngineThreads.FUTURES.execute(this::finish);
    }
  }

  /** Somebody else completed it, by cancelling mostly: nobody waits any more. */
  private void abandon() {
    if (state.getAndSet(State.OVER) == State.WAITING) {
      group.cancelled = true;
      release();
    }
  }

  private void release() {
    if (alarm != null) {
      alarm.cancel(false);
    }
    if (places != null) {
      Waiting.giveBack(places, true);
    }
    Waiting.giveUp(group);
  }

  private void finish() {
    release();
    try {
      complete(Barriers.finish(plan, group, context, site));
    } catch (Throwable error) { // the policy's exception, mostly
      completeExceptionally(error);
    }
  }

  /** What depends on it is an ordinary future. */
  @Override
  public <U> CompletableFuture<U> newIncompleteFuture() {
    return new CompletableFuture<>();
  }
}
