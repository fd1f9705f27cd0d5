package dev.antipode.internal.engine;

import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Reading;
import dev.antipode.Verdict;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.observer.Observers;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** Reads here after a barrier, or elsewhere where it does not pass in time (BAR-46). */
public final class Fallback {
  private static final AtomicInteger RUNNING = new AtomicInteger();

  private Fallback() {}

  /**
   * Reads here after a barrier, or by the fallback (from the primary) where the barrier does not pass in time. The other place
   * is judged, too: each read of a wrapped client in the fallback first waits until the writes are there, as inside {@code
   * reading(after)}, for after a failover the primary may have lost them. What it asks of a plain client nobody judges.
   *
   * <p>At most {@code max_fallbacks} fallbacks run at once, so that a lagging replica does not become an overloaded primary.
   *
   * @throws BarrierUnprovenException where a store is unproven, without the second read; {@code onUnproven(PROCEED)} tries that
   * @throws BarrierTimeoutException where so many run already
   * @throws Exception what the read throws that was run
   */
  public static <T> T readOrFallback(Callable<T> read, Callable<T> fallback, BarrierOptions options)
      throws Exception {
    BarrierResult result = Barriers.barrier(proceeding(options));
    if (result.satisfied()) {
      return read.call();
    }
    take(result, options);
    try {
      return judged(options, fallback);
    } finally {
      RUNNING.decrementAndGet();
    }
  }

  /** The same without a thread that waits; a fallback runs until what it returned completes. */
  public static <T> CompletableFuture<T> readOrFallbackAsync(
      Supplier<? extends CompletionStage<T>> read,
      Supplier<? extends CompletionStage<T>> fallback,
      BarrierOptions options) {
    Context context = Context.current();
    return Barriers.barrierAsync(proceeding(options)).thenCompose(result -> {
      if (result.satisfied()) {
        return read.get();
      }
      take(result, options);
      CompletionStage<T> reading;
      try (Scope scope = context.makeCurrent()) {
        reading = judged(options, fallback::get);
      } catch (Throwable error) {
        RUNNING.decrementAndGet();
        throw error instanceof RuntimeException unchecked ? unchecked : new CompletionException(error);
      }
      return reading.whenComplete((value, error) -> RUNNING.decrementAndGet());
    });
  }

  private static BarrierOptions proceeding(BarrierOptions options) {
    Policy said = options.onUnproven();
    if (said != null && said != Policy.RAISE && said != Policy.PROCEED) {
      throw new ConfigurationException("AP111", "readOrFallback: onUnproven(" + said.name() + "): want RAISE, PROCEED");
    }
    return options.onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
  }

  /** Has each read inside wait for the lineage first; what is read counts for the caller's own reading, too. */
  private static <T> T judged(BarrierOptions options, Callable<T> fallback) throws Exception {
    LineageScope scope = LineageScope.current();
    Lineage given = options.lineage() != null ? options.lineage() : scope == null ? Lineage.EMPTY : scope.held();
    Lineage wanted = given;
    if (options.stores() != null) {
      wanted = Lineage.of(options.stores().stream().flatMap(store -> given.ofStore(store).stream()).toList());
    }
    Reading outer = Reading.current();
    Lineage after = outer == null ? wanted : wanted.union(outer.after().orElse(Lineage.EMPTY));
    try (Reading seen = new Reading(after)) {
      T value = fallback.call();
      if (outer != null) {
        outer.saw(seen.lineage());
      }
      return value;
    }
  }

  private static void check(BarrierResult result, Policy onUnproven) {
    if (result.stores().containsKey(Branches.STORE)) {
      throw new BarrierTimeoutException(
          "AP210", "no fallback: what open branches write is known nowhere\n" + result.explain(), result);
    }
    List<String> lost = new ArrayList<>();
    result.stores().forEach((name, store) -> {
      if (store.verdict() == Verdict.UNPROVEN) {
        lost.add(name);
      }
    });
    if (!lost.isEmpty() && onUnproven != Policy.PROCEED) {
      throw Enforcement.unproven(result, lost);
    }
  }

  private static void take(BarrierResult result, BarrierOptions options) {
    check(result, options.onUnproven());
    int most = ProcessSettings.inForce().maxFallbacks();
    if (RUNNING.incrementAndGet() > most) {
      RUNNING.decrementAndGet();
      Observers.events().onFallback("refused");
      throw new BarrierTimeoutException("AP114", "no fallback: " + most + " run already\n" + result.explain(), result);
    }
    Observers.events().onFallback("run");
  }
}
