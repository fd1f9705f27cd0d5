package dev.antipode.grpc;

import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.Propagation.Outgoing;
import io.grpc.ClientCall;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;

/** A call that starts with the caller's lineage, if its host is approved. */
final class OutboundCall<Q, A> extends SimpleForwardingClientCall<Q, A> {
  private final String host;
  private final Attempts attempts;
  private final boolean isOneAnswer;

  OutboundCall(ClientCall<Q, A> inner, String host, Attempts attempts, boolean isOneAnswer) {
    super(inner);
    this.host = host;
    this.attempts = attempts;
    this.isOneAnswer = isOneAnswer;
  }

  @Override
  public void start(Listener<A> listener, Metadata headers) {
    MetadataCarrier carrier = MetadataCarrier.copyOf(headers);
    Outgoing outgoing = Propagation.prepareRequest(carrier, host);
    outgoing.changes().forEach((name, value) -> {
      if (value == null) {
        carrier.remove(name);
      } else {
        carrier.set(name, value);
      }
    });
    OutboundListener<A> joining = new OutboundListener<>(listener, Context.current(), host, attempts, isOneAnswer);
    try (Scope call = Propagation.approved(outgoing.text())) {
      super.start(joining, carrier.metadata());
    }
  }
}
