package dev.antipode.grpc;

import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Carriers.InboundHeaders;
import dev.antipode.propagation.Inbound;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Deadline;
import io.grpc.Grpc;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.opentelemetry.context.Scope;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.concurrent.TimeUnit;

/** Opens a scope for every call of a server, and ends the call with what it added to its lineage. */
final class InboundCalls implements ServerInterceptor {
  /** In gRPC's own Context of a call that has a scope already: servers begin each call with an empty one. */
  private static final Context.Key<Inbound> OURS = Context.key("antipode-inbound");

  private final boolean edge;

  InboundCalls(boolean edge) {
    this.edge = edge;
  }

  @Override
  public <Q, A> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
    if (OURS.get() != null) {
      return next.startCall(call, headers);
    }
    MetadataCarrier carrier = new MetadataCarrier(headers);
    InboundHeaders came = Carriers.read(carrier.lines());
    Inbound inbound = new Inbound(came, peer(call), edge);
    String method = "/" + call.getMethodDescriptor().getFullMethodName();
    inbound.scope().endpoint(() -> method);
    Deadline deadline = Context.current().getDeadline();
    if (deadline != null) {
      inbound.scope().deadline(System.nanoTime() + deadline.timeRemaining(TimeUnit.NANOSECONDS));
    }
    if (came.hasLineage()) {
      carrier.strip();
    }
    InboundCall<Q, A> answering = new InboundCall<>(call, inbound, headers);
    Context context = Context.current().withValue(OURS, inbound);
    try (Scope current = inbound.makeCurrent()) {
      return new InboundListener<>(Contexts.interceptCall(context, answering, headers, next), answering, inbound);
    } catch (RuntimeException | Error e) {
      answering.closeFor(Status.fromThrowable(e)); // the server would, without a trailer
      inbound.close();
      throw e;
    }
  }

  /** The socket's peer; in-process transport counts as a Unix socket. */
  private static String peer(ServerCall<?, ?> call) {
    SocketAddress peer = call.getAttributes().get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR);
    if (peer instanceof InetSocketAddress address) {
      return address.getAddress() == null ? address.getHostString() : address.getAddress().getHostAddress();
    }
    String kind = peer == null ? "" : peer.getClass().getSimpleName();
    boolean isLocal =
        kind.equals("InProcessSocketAddress") || kind.equals("DomainSocketAddress") || kind.equals("UnixDomainSocketAddress");
    return isLocal ? "unix:" : "unknown " + kind;
  }
}
