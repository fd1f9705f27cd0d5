package dev.antipode.grpc;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.MethodDescriptor;

/** Carries lineages with the calls of a channel. */
final class OutboundCalls implements ClientInterceptor {
  private final String target; // null: the channel's authority

  OutboundCalls(String target) {
    this.target = target;
  }

  @Override
  public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    // Not the call's own authority, which may be any word: the connections are the channel's.
    String host = target == null ? next.authority() : Targets.host(target);
    Attempts attempts = new Attempts();
    ClientCall<Q, A> call = next.newCall(method, options.withStreamTracerFactory(attempts));
    return new OutboundCall<>(call, host == null ? "" : host, attempts, method.getType().serverSendsOneMessage());
  }
}
