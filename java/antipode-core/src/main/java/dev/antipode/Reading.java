package dev.antipode;

import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextKey;
import io.opentelemetry.context.Scope;
import java.util.Arrays;
import java.util.Collection;
import java.util.Optional;

/**
 * Collects what the values that are read inside a block depend on: the lineages at rest beside them, and identifiers of
 * the values themselves (chapter SHIM of the specification).
 *
 * <pre>{@code
 * try (Reading seen = Antipode.reading()) {
 *   post = posts.get("post:42");
 *   Antipode.transfer(seen.lineage());
 * }
 * }</pre>
 */
public final class Reading implements AutoCloseable {
  private static final ContextKey<Reading> KEY = ContextKey.named("antipode-reading");

  private final Lineage after;
  private final Scope current;
  private Lineage lineage = Lineage.EMPTY; // under the lock of this
  private boolean merging;
  private boolean closed;

  /** Begins a block; {@code after}: what each of its reads waits for, null for nothing. */
  public Reading(Lineage after) {
    this.after = after;
    this.current = Context.current().with(KEY, this).makeCurrent();
  }

  /** The innermost block that the caller is in, or null: what shims ask before they read. */
  public static Reading current() {
    return Context.current().get(KEY);
  }

  /** At the end of the block the current scope is made to depend on what was read. */
  public Reading merging() {
    merging = true;
    return this;
  }

  /** Each read first waits for this, on its own connection (reach session); empty where reads do not wait. */
  public Optional<Lineage> after() {
    return Optional.ofNullable(after);
  }

  /** What a reader of these values depends on. */
  public synchronized Lineage lineage() {
    return lineage;
  }

  /** A shim has read a value: its lineage at rest, and identifiers that cover the value itself. */
  public void saw(Lineage atRest, WriteId... ids) {
    saw(atRest, Arrays.asList(ids));
  }

  /** A shim has read a value: its lineage at rest, and identifiers that cover the value itself. */
  public synchronized void saw(Lineage atRest, Collection<WriteId> ids) {
    lineage = lineage.union(atRest).including(ids);
  }

  /** A shim has read a value of which it cannot tell what it depends on. */
  public synchronized void marked(String store) {
    lineage = lineage.markedIncomplete(store);
  }

  /** Ends the block. Twice is harmless. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    current.close();
    LineageScope scope = LineageScope.current();
    if (merging && scope != null) {
      scope.transferRead(lineage());
    }
  }
}
