package dev.antipode.barrier;

import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.Policy;
import dev.antipode.configuration.ProcessSettings;
import dev.antipode.telemetry.Telemetry;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** Reads here after a barrier, or elsewhere where it does not pass in time (BAR-46). */
public final class Fallback {
  private static final AtomicInteger RUNNING = new AtomicInteger();

  private Fallback() {}

  /**
   * Reads here after a barrier, or by the fallback (from the primary) where the barrier does not pass in time. At most
   * {@code max_fallbacks} fallbacks run at once, so that a lagging replica does not become an overloaded primary.
   *
   * @throws BarrierTimeoutException where so many run already
   * @throws Exception what the read throws that was run
   */
  public static <T> T readOrFallback(Callable<T> read, Callable<T> fallback, BarrierOptions options)
      throws Exception {
    BarrierResult result = Barriers.barrier(proceeding(options));
    if (result.satisfied()) {
      return read.call();
    }
    take(result);
    try {
      return fallback.call();
    } finally {
      RUNNING.decrementAndGet();
    }
  }

  /** The same without a thread that waits; a fallback runs until what it returned completes. */
  public static <T> CompletableFuture<T> readOrFallbackAsync(
      Supplier<? extends CompletionStage<T>> read,
      Supplier<? extends CompletionStage<T>> fallback,
      BarrierOptions options) {
    return Barriers.barrierAsync(proceeding(options)).thenCompose(result -> {
      if (result.satisfied()) {
        return read.get();
      }
      take(result);
      CompletionStage<T> reading;
      try {
        reading = fallback.get();
      } catch (Throwable error) {
        RUNNING.decrementAndGet();
        throw error;
      }
      return reading.whenComplete((value, error) -> RUNNING.decrementAndGet());
    });
  }

  private static BarrierOptions proceeding(BarrierOptions options) {
    return options.onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
  }

  private static void take(BarrierResult result) {
    int most = ProcessSettings.inForce().maxFallbacks();
    if (RUNNING.incrementAndGet() > most) {
      RUNNING.decrementAndGet();
      Telemetry.fallback("refused");
      throw new BarrierTimeoutException("no fallback: " + most + " run already\n" + result.explain(), result);
    }
    Telemetry.fallback("run");
  }
}
