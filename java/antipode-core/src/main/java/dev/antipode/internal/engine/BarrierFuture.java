package dev.antipode.internal.engine;

import dev.antipode.BarrierResult;
import dev.antipode.observer.Observers;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.RegisteredStore;
import io.opentelemetry.context.Context;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/** A barrier that waits without a thread. It completes once, and gives its place up when it is cancelled (BAR-32). */
final class BarrierFuture extends CompletableFuture<BarrierResult> {
  private enum State {
    STARTING,
    WAITING,
    OVER
  }

  private final Executor executor;
  private final Context context = Context.current();
  private final String site;
  private final BarrierWaits waits; // by one thread after the other
  private volatile Round round; // the last one
  private boolean isWatched; // whether cancelling gives places up

  private BarrierFuture(Plan plan, Executor executor) {
    this.executor = executor == null ? EngineThreads.FUTURES : executor;
    this.site = Observers.events().wantsBarrierSites() ? CallSite.current() : null;
    this.waits = new BarrierWaits(plan);
  }

  /** Begins to wait. */
  static CompletableFuture<BarrierResult> start(Plan plan, Executor executor) {
    BarrierFuture future = new BarrierFuture(plan, executor);
    future.waitOn();
    return future;
  }

  /** Begins waits, until one has something to wait for, or the barrier is over. */
  private void waitOn() {
    do {
      round = new Round();
      try {
        if (round.begin()) {
          return;
        }
      } catch (Throwable error) { // nobody else would give up what it has
        round.release();
        throw error;
      }
    } while (!finish());
  }

  /** The wait is over; returns whether the barrier is. */
  private boolean finish() {
    round.release();
    try {
      if (isDone()) { // cancelled
        return true;
      }
      if (!waits.take(round.group)) {
        return false;
      }
      complete(Barriers.finish(waits, context, site));
    } catch (Throwable error) { // the policy's exception, mostly
      completeExceptionally(error);
    }
    return true;
  }

  /** One of its waits. */
  private final class Round {
    private final WaitGroup group = waits.begin(this::over);
    private final AtomicReference<State> state = new AtomicReference<>(State.STARTING);
    private final AtomicBoolean hasGoneOn = new AtomicBoolean();
    private Map<RegisteredStore, Integer> places;
    private Future<?> alarm;

    /** Return whether something is waited for; then {@link #over} ends it. */
    boolean begin() {
      if (ServerWaiting.park(group, waits.plan().asked())) {
        places = ServerWaiting.takePlaces(group, true);
        if (places != null) {
          // Everything that ends the wait reads these two after the state has left STARTING.
          alarm = EngineThreads.TIMER.schedule(this::over, ServerWaiting.patience(group), TimeUnit.NANOSECONDS);
          if (!isWatched) {
            isWatched = true;
            whenComplete((result, error) -> round.abandon());
          }
          if (state.compareAndSet(State.STARTING, State.WAITING)) {
            if (isDone()) { // cancelled, while the round before was the last one
              abandon();
            }
            return true;
          }
        }
      }
      state.set(State.OVER);
      return false;
    }

    /** Everything is settled, or the deadline has passed. */
    private void over() {
      if (state.compareAndSet(State.STARTING, State.OVER) || !state.compareAndSet(State.WAITING, State.OVER)) {
        return; // who begins it finishes it, or it is over already
      }
      try {
        executor.execute(this::goOn);
      } catch (Throwable error) { // the application's executor, which may still run it; the future completes anyway
        EngineThreads.FUTURES.execute(this::goOn);
      }
    }

    private void goOn() {
      if (!hasGoneOn.compareAndSet(false, true)) {
        return;
      }
      try {
        if (!finish()) {
          waitOn();
        }
      } catch (Throwable error) { // nobody else completes it
        completeExceptionally(error);
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
        ServerWaiting.giveBack(places, true);
      }
      ServerWaiting.giveUp(group);
    }
  }

  /** What depends on it is an ordinary future. */
  @Override
  public <U> CompletableFuture<U> newIncompleteFuture() {
    return new CompletableFuture<>();
  }
}
