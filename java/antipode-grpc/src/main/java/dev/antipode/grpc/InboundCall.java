package dev.antipode.grpc;

import dev.antipode.propagation.Inbound;
import dev.antipode.propagation.SharedCaches;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.Status;
import java.util.concurrent.atomic.AtomicBoolean;

/** A call that ends with what its scope added, whatever its status (PROP-15). */
final class InboundCall<Q, A> extends SimpleForwardingServerCall<Q, A> {
  private final Inbound inbound;
  private final AtomicBoolean closed = new AtomicBoolean();

  InboundCall(ServerCall<Q, A> inner, Inbound inbound) {
    super(inner);
    this.inbound = inbound;
  }

  @Override
  public void close(Status status, Metadata trailers) {
    if (closed.compareAndSet(false, true)) {
      end(status, trailers);
    } else {
      super.close(status, trailers); // says what is wrong with that
    }
  }

  /** Ends a call whose handler failed, as the server itself would do a moment later. */
  void closeFor(Status status) {
    if (closed.compareAndSet(false, true)) {
      end(status, new Metadata());
    }
  }

  private void end(Status status, Metadata trailers) {
    MetadataCarrier carrier = MetadataCarrier.copyOf(trailers);
    inbound.injectResponse(carrier, SharedCaches.ANY_METHOD, SharedCaches.ANY_STATUS);
    super.close(status, carrier.metadata());
  }
}
