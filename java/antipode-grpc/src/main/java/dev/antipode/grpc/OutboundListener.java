package dev.antipode.grpc;

import dev.antipode.Gap;
import dev.antipode.LineageScope;
import dev.antipode.propagation.Propagation;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.util.List;

/**
 * Joins what a call brings back into the caller's scope, and runs its callbacks there: they come in threads of the channel.
 *
 * <p>Where the server sends one message, that waits for the end of the call, a moment later: whoever has the answer has its
 * lineage. Where it sends a stream, the scope is incomplete from the first message to the end (PROP-28).
 */
final class OutboundListener<A> extends ClientCall.Listener<A> {
  private final ClientCall.Listener<A> inner;
  private final Context caller;
  private final String host;
  private final Attempts attempts;
  private final boolean isOneAnswer;
  private final LineageScope scope; // null: outside any
  private final Gap stream; // null: nothing to be told of it
  private A held; // callbacks come one after another

  OutboundListener(
      ClientCall.Listener<A> inner, Context caller, String host, Attempts attempts, boolean isOneAnswer) {
    this.inner = inner;
    this.caller = caller;
    this.host = host;
    this.attempts = attempts;
    this.isOneAnswer = isOneAnswer;
    this.scope = LineageScope.in(caller);
    this.stream = isOneAnswer ? null : Propagation.stream(scope, host);
  }

  @Override
  public void onHeaders(Metadata headers) {
    try (Scope current = caller.makeCurrent()) {
      inner.onHeaders(headers);
    }
  }

  @Override
  public void onReady() {
    try (Scope current = caller.makeCurrent()) {
      inner.onReady();
    }
  }

  @Override
  public void onMessage(A message) {
    A next = message;
    if (isOneAnswer) {
      next = held; // a second one is an error, which the stub will say
      held = message;
    } else if (stream != null) {
      scope.streaming(stream);
    }
    deliver(next);
  }

  private void deliver(A message) {
    if (message != null) {
      try (Scope current = caller.makeCurrent()) {
        inner.onMessage(message);
      }
    }
  }

  @Override
  public void onClose(Status status, Metadata trailers) {
    List<String> values = attempts.lineages(new MetadataCarrier(trailers).lineages());
    if (!values.isEmpty()) {
      Propagation.mergeResponse(scope, values, host);
    }
    boolean unanswered = attempts.isOneUnanswered(status);
    if (stream == null) {
      if (unanswered) {
        Propagation.unanswered(scope, host, status.getCode().name());
      }
    } else { // judged when it was made: a setting that changed meanwhile must not hide what is lost
      if (unanswered) {
        Propagation.markUnanswered(scope, host, status.getCode().name());
      } else if (!values.isEmpty() && !Propagation.expects(scope, host)) {
        Propagation.markUnanswered(scope, host, "its trailer is not taken, by settings that came while it was open");
      }
      scope.streamed(stream);
    }
    Status end = status;
    try {
      deliver(held);
    } catch (RuntimeException e) { // what the channel does where a message is not taken
      end = Status.CANCELLED.withCause(e).withDescription("Failed to read message.");
    }
    held = null;
    try (Scope current = caller.makeCurrent()) {
      inner.onClose(end, trailers);
    }
  }
}
