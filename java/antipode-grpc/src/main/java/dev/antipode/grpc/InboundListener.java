package dev.antipode.grpc;

import dev.antipode.propagation.Inbound;
import io.grpc.ServerCall;
import io.grpc.Status;
import io.opentelemetry.context.Scope;

/** Runs every callback of a call in its scope, in whichever thread it comes, and ends the scope with the call. */
final class InboundListener<Q> extends ServerCall.Listener<Q> {
  private static final Status FAILED = Status.UNKNOWN.withDescription("Application error processing RPC");

  private final ServerCall.Listener<Q> inner;
  private final InboundCall<Q, ?> call;
  private final Inbound inbound;

  InboundListener(ServerCall.Listener<Q> inner, InboundCall<Q, ?> call, Inbound inbound) {
    this.inner = inner;
    this.call = call;
    this.inbound = inbound;
  }

  private void run(Runnable callback) {
    try (Scope current = inbound.makeCurrent()) {
      callback.run();
    } catch (RuntimeException | Error e) {
      call.closeFor(FAILED.withCause(e)); // the server would, in these words and without a trailer
      throw e;
    }
  }

  @Override
  public void onMessage(Q message) {
    run(() -> inner.onMessage(message));
  }

  @Override
  public void onHalfClose() {
    run(inner::onHalfClose);
  }

  @Override
  public void onReady() {
    run(inner::onReady);
  }

  @Override
  public void onCancel() {
    last(inner::onCancel);
  }

  @Override
  public void onComplete() {
    last(inner::onComplete);
  }

  private void last(Runnable callback) {
    try (Scope current = inbound.makeCurrent()) {
      callback.run();
    } finally {
      inbound.close();
    }
  }
}
