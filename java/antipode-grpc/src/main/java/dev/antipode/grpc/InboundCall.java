package dev.antipode.grpc;

import dev.antipode.propagation.Inbound;
import dev.antipode.propagation.SharedCaches;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.Status;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A call that ends with what its scope added, whatever its status (PROP-15); and with how often gRPC has repeated it, of
 * which clients elsewhere are not told (PROP-32).
 */
final class InboundCall<Q, A> extends SimpleForwardingServerCall<Q, A> {
  private static final Metadata.Key<String> REPEATED =
      Metadata.Key.of("grpc-previous-rpc-attempts", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> PREVIOUS =
      Metadata.Key.of("antipode-previous-attempts", Metadata.ASCII_STRING_MARSHALLER);

  private final Inbound inbound;
  private final String repeated;
  private final AtomicBoolean closed = new AtomicBoolean();

  InboundCall(ServerCall<Q, A> inner, Inbound inbound, Metadata request) {
    super(inner);
    this.inbound = inbound;
    this.repeated = request.get(REPEATED);
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
    if (repeated != null && repeated.matches("(?=.*[1-9])[0-9]{1,3}") && inbound.isHeard()) {
      carrier.metadata().discardAll(PREVIOUS); // of another call, whose trailers are passed on
      carrier.metadata().put(PREVIOUS, repeated);
    }
    super.close(status, carrier.metadata());
  }
}
