package dev.antipode.propagation;

import dev.antipode.LineageScope;
import io.opentelemetry.context.Scope;

/** A request that runs in this thread: its scope is current until this is closed, and ends then. */
public final class RequestScope implements AutoCloseable {
  private final Inbound inbound;
  private final Scope current;

  RequestScope(Inbound inbound) {
    this.inbound = inbound;
    this.current = inbound.makeCurrent();
  }

  /** The request's scope. */
  public LineageScope scope() {
    return inbound.scope();
  }

  @Override
  public void close() {
    current.close();
    inbound.close();
  }
}
