package dev.antipode;

import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.engine.Barriers;
import dev.antipode.internal.engine.Fallback;
import dev.antipode.internal.scope.ContextTransfer;
import dev.antipode.internal.scope.CarryingExecutor;
import dev.antipode.internal.scope.ScopeLog;
import dev.antipode.internal.store.Registry;
import dev.antipode.observer.Observers;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.CallSite;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The verbs, on the scope of the running request, message or task (paper table 2).
 *
 * <p>Three lines are enough: wrap the client, add the filter, call {@code barrier()} before a read.
 */
public final class Antipode {
  private Antipode() {}

  // Scopes

  /** Opens a new, empty scope and makes it current; it never clears a shared one (paper table 2, SCOPE-5). */
  public static LineageScope root() {
    return LineageScope.open(Lineage.EMPTY, ScopeKind.ROOT);
  }

  /** A new empty scope, for try-with-resources: {@link #root} … {@link #stop}. */
  public static LineageScope scope() {
    return root();
  }

  /** A new scope that begins with a lineage: an outbox row's, an earlier request's. */
  public static LineageScope scope(Lineage lineage) {
    LineageScope opened = LineageScope.open(lineage, ScopeKind.ROOT);
    Observers.events().onLineageReceived(opened, List.of(), lineage);
    return opened;
  }

  /** A copy of the current scope, for work that outlives the request (SCOPE-7); {@link #carry} keeps it open. */
  public static LineageScope detachedScope() {
    LineageScope outer = LineageScope.current();
    LineageScope copy = LineageScope.open(outer == null ? Lineage.EMPTY : outer.lineage(), ScopeKind.DETACHED);
    if (outer != null) {
      Observers.events().onScopeCopied(outer, copy);
    }
    return copy;
  }

  /**
   * The scope of one message, from its lineage's text (null: none): any queue without a shim. One a message, never one a
   * batch (SCOPE-6). Never throws for what the text holds.
   */
  public static LineageScope messageScope(String text) {
    return Messages.open(text, Messages.Options.DEFAULTS);
  }

  /** The same from the message's headers or properties. */
  public static LineageScope messageScope(Map<String, ?> headers) {
    return Messages.open(headers, Messages.Options.DEFAULTS);
  }

  /** The scope of the running request, message or task. */
  public static Optional<LineageScope> currentScope() {
    return Optional.ofNullable(LineageScope.current());
  }

  /** Ends the current scope (paper table 2); what was current before it is current again. */
  public static void stop() {
    LineageScope current = LineageScope.current();
    if (current != null) {
      current.close();
    }
  }

  // The lineage of the current scope

  /** Adds writes to the current scope; outside any they are counted as orphans, with the site (SCOPE-9). */
  public static void append(WriteId... ids) {
    LineageScope current = LineageScope.current();
    if (current != null) {
      current.append(ids);
    } else if (ids.length > 0) {
      ScopeLog.orphan(ids[0].store());
    }
  }

  /** Takes a write, and all that it covers, out of the current scope; see {@link LineageScope#remove(WriteId)}. */
  public static Removal remove(WriteId id) {
    LineageScope current = LineageScope.current();
    return current == null ? Removal.NOTHING : current.remove(id);
  }

  /** Takes out what a lineage covers. */
  public static Removal remove(Lineage lineage) {
    LineageScope current = LineageScope.current();
    return current == null ? Removal.NOTHING : current.remove(lineage);
  }

  /** Takes out a whole store, with its mark of incompleteness. */
  public static Removal remove(String store) {
    LineageScope current = LineageScope.current();
    return current == null ? Removal.NOTHING : current.remove(store);
  }

  /** The application vouches that nothing is missing: every mark of incompleteness goes (LIN-23). */
  public static void removeIncomplete() {
    LineageScope current = LineageScope.current();
    if (current != null) {
      current.removeIncomplete();
    }
  }

  /** Makes the current scope depend on a lineage (paper table 2). */
  public static void transfer(Lineage lineage) {
    LineageScope current = LineageScope.current();
    if (current != null) {
      current.transfer(lineage);
    } else if (lineage.hasContent()) {
      ScopeLog.orphan(lineage.stores().stream().findFirst().orElse(""));
    }
  }

  /**
   * The current scope's lineage as text, as it may leave now (paper table 2, SCOPE-20).
   *
   * @throws ConfigurationException outside any scope: that is no empty lineage (SCOPE-22)
   */
  public static String serialize() {
    LineageScope current = LineageScope.current();
    if (current == null) {
      throw new ConfigurationException(
          "AP101", "Antipode.serialize() was called outside any scope. (site: " + CallSite.current() + ")");
    }
    return current.outgoing().serialize();
  }

  /**
   * Reads a lineage text (paper table 2).
   *
   * @throws MalformedLineageException for a text that is no lineage
   */
  public static Lineage deserialize(String text) {
    return Lineage.deserialize(text);
  }

  // Barriers

  /** {@link #barrier(BarrierOptions)} on all stores that this process has registered, as set. */
  public static BarrierResult barrier() {
    return Barriers.barrier(BarrierOptions.defaults());
  }

  /**
   * Blocks until the writes of the lineage are visible here, under one deadline, in all stores at once (chapter BAR of
   * the specification).
   *
   * @throws BarrierTimeoutException where a write is not visible in time, as {@code onTimeout} says
   * @throws BarrierUnprovenException where no proof is possible, as {@code onUnproven} says
   * @throws BarrierIncompleteException where something was left unjudged and that was to fail
   * @throws RedeliverException where a policy gives the message back
   * @throws ConfigurationException outside any scope, without any store, for misspelt names
   * @throws BlockingCallException on a running event loop
   * @throws BarrierInterruptedException where the thread is interrupted; its flag is set again
   */
  public static BarrierResult barrier(BarrierOptions options) {
    return Barriers.barrier(options);
  }

  /** {@link #barrierAsync(BarrierOptions)} on all stores that this process has registered, as set. */
  public static CompletableFuture<BarrierResult> barrierAsync() {
    return Barriers.barrierAsync(BarrierOptions.defaults());
  }

  /**
   * {@link #barrier(BarrierOptions)} without a thread that waits. The future completes once, with the result or with the
   * exception of a policy; cancelling it gives the place up (BAR-32). What depends on it runs on the options' executor,
   * else on a few threads of Antipode's own on which nothing may block.
   *
   * @throws ConfigurationException at once, where the call itself is wrong
   */
  public static CompletableFuture<BarrierResult> barrierAsync(BarrierOptions options) {
    return Barriers.barrierAsync(options);
  }

  /**
   * Reads here after a barrier, or by the fallback (from the primary) where the barrier does not pass in time (BAR-46). The
   * other place is judged, too: each read of a wrapped client in the fallback first waits until the writes are there, as
   * inside {@link #reading(Lineage)}; what the fallback asks of a plain client nobody judges.
   *
   * @throws BarrierUnprovenException where a store is unproven, without the second read, unless {@code onUnproven(PROCEED)}
   * @throws BarrierTimeoutException where {@code max_fallbacks} fallbacks run already
   * @throws Exception what the read throws that was run
   */
  public static <T> T readOrFallback(Callable<T> read, Callable<T> fallback, BarrierOptions options)
      throws Exception {
    return Fallback.readOrFallback(read, fallback, options);
  }

  /**
   * {@link #readOrFallback} without a thread that waits; a fallback runs until what it returned completes. Judged are the reads
   * that the supplier itself issues, not those that depend on them.
   */
  public static <T> CompletableFuture<T> readOrFallbackAsync(
      Supplier<? extends CompletionStage<T>> read,
      Supplier<? extends CompletionStage<T>> fallback,
      BarrierOptions options) {
    return Fallback.readOrFallbackAsync(read, fallback, options);
  }

  /** The stores that this process has registered. */
  public static List<Store> stores() {
    return List.copyOf(Registry.current().all());
  }

  // Reading

  /** Collects what the reads inside the block depend on. */
  public static Reading reading() {
    return new Reading(null);
  }

  /** The same; each read first waits until this lineage's writes to its own store are visible on its own connection. */
  public static Reading reading(Lineage after) {
    return new Reading(after);
  }

  // Threads and executors

  /**
   * Work that runs in the scope that is current now, in whichever thread it runs (SCOPE-12). A detached scope stays open
   * until the work has run once.
   */
  public static Runnable carry(Runnable work) {
    return ContextTransfer.of(work);
  }

  /** The same for work with a result. */
  public static <T> Callable<T> carry(Callable<T> work) {
    ContextTransfer carrying = new ContextTransfer();
    return () -> {
      try (var in = carrying.enter()) {
        return work.call();
      }
    };
  }

  /** The same for a function: a stage of a {@link java.util.concurrent.CompletableFuture}. */
  public static <T, R> Function<T, R> carry(Function<T, R> work) {
    ContextTransfer carrying = new ContextTransfer();
    return value -> {
      try (var in = carrying.enter()) {
        return work.apply(value);
      }
    };
  }

  /** An executor around this one, whose work runs in the scope in which it was submitted. */
  public static ExecutorService carryAll(ExecutorService executor) {
    return new CarryingExecutor(executor);
  }

  // Settings

  /**
   * Sets what is said here for the process, at once and also while it runs; the rest stays as it is (CONF-2). The
   * environment is read again.
   *
   * @return the settings then in force
   * @throws ConfigurationException for a bad value; nothing is changed then
   */
  public static Settings configure(Settings settings) {
    Settings inForce = ProcessSettings.configure(settings);
    Observers.events().onSettingsChanged();
    return inForce;
  }

  /**
   * The settings in force. Cheap enough for every request.
   *
   * @throws ConfigurationException at the first call, where a variable cannot be read; the message names it
   */
  public static Settings settings() {
    return ProcessSettings.inForce();
  }
}
