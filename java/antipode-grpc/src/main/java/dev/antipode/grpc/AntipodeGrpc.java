package dev.antipode.grpc;

import dev.antipode.shim.CallSite;
import dev.antipode.shim.TrustRules;
import io.grpc.ClientInterceptor;
import io.grpc.ServerInterceptor;

/**
 * Lineages with gRPC calls of all four kinds: out in metadata, back in trailing metadata (PROP-15).
 *
 * <pre>{@code
 * Server server = NettyServerBuilder.forPort(9090).addService(posts).intercept(AntipodeGrpc.serverInterceptor()).build();
 * Channel channel = ClientInterceptors.intercept(plain, AntipodeGrpc.clientInterceptor());
 * }</pre>
 *
 * <p>A call has one scope from its first byte to its last, streams too (SCOPE-8). A lineage that leaves with a call is the
 * scope's as it is when the call starts, and one that comes back is there when the call has ended: from the first message of
 * a response stream until then the caller's scope is incomplete (PROP-28). Messages of a stream that depend on something of
 * their own carry {@code Antipode.serialize()} as a field, and the handler opens {@code
 * Antipode.messageScope(text)} for each.
 */
public final class AntipodeGrpc {
  static {
    CallSite.skipPackages("io.grpc.", "io.opentelemetry.");
  }

  private AntipodeGrpc() {}

  /**
   * A scope for each call of a server. The call's own deadline tightens the barriers in it (PROP-25).
   *
   * <p>It belongs outside of all interceptors that write to stores or end calls: the last one that is added to a server
   * builder. A call that ends by an exception out of a handler carries its writes back too.
   *
   * @throws dev.antipode.ConfigurationException where the settings of trust are wrong
   */
  public static ServerInterceptor serverInterceptor() {
    return serverInterceptor(false);
  }

  /**
   * The same; {@code edge}: callers of this server are outside, nothing of theirs is taken and nothing goes back to them
   * (TRUST-4). It adds to the setting.
   *
   * @throws dev.antipode.ConfigurationException where the settings of trust are wrong
   */
  public static ServerInterceptor serverInterceptor(boolean edge) {
    TrustRules.check();
    return new InboundCalls(edge);
  }

  /**
   * Carries lineages with the calls of a channel, if its authority is approved (TRUST-15): the host that the channel was
   * opened for, or what {@code overrideAuthority} has made of it.
   *
   * @throws dev.antipode.ConfigurationException where the settings of trust are wrong
   */
  public static ClientInterceptor clientInterceptor() {
    TrustRules.check();
    return new OutboundCalls(null);
  }

  /**
   * The same for a channel to this target, whatever its authority says: the text that the channel was opened with.
   *
   * @throws dev.antipode.ConfigurationException where the settings of trust are wrong
   */
  public static ClientInterceptor clientInterceptor(String target) {
    TrustRules.check();
    return new OutboundCalls(target);
  }
}
