package dev.antipode.grpc;

import io.grpc.Channel;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.Marshaller;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/** A service on a real socket of this machine, its messages plain text, and channels to it. */
final class Posts implements AutoCloseable {
  private static final String SERVICE = "antipode.test.Posts";

  static final MethodDescriptor<String, String> GET = method(MethodType.UNARY, "Get");
  static final MethodDescriptor<String, String> UPLOAD = method(MethodType.CLIENT_STREAMING, "Upload");
  static final MethodDescriptor<String, String> LIST = method(MethodType.SERVER_STREAMING, "List");
  static final MethodDescriptor<String, String> TALK = method(MethodType.BIDI_STREAMING, "Talk");

  private final ExecutorService pool = Executors.newFixedThreadPool(4);
  private final List<ManagedChannel> channels = new ArrayList<>();
  private final Server server;

  Posts(MethodDescriptor<String, String> method, ServerCallHandler<String, String> handler, ServerInterceptor... ours) {
    NettyServerBuilder builder = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0)).executor(pool);
    builder.addService(service(method, handler));
    for (ServerInterceptor each : ours) {
      builder.intercept(each);
    }
    try {
      server = builder.build().start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** With Antipode's interceptor alone. */
  static Posts serving(MethodDescriptor<String, String> method, ServerCallHandler<String, String> handler) {
    return new Posts(method, handler, AntipodeGrpc.serverInterceptor());
  }

  static ServerServiceDefinition service(
      MethodDescriptor<String, String> method, ServerCallHandler<String, String> handler) {
    return ServerServiceDefinition.builder(SERVICE).addMethod(method, handler).build();
  }

  int port() {
    return server.getPort();
  }

  /** A channel with Antipode's interceptor. */
  Channel channel() {
    return channel(AntipodeGrpc.clientInterceptor());
  }

  Channel channel(ClientInterceptor... interceptors) {
    return channel(builder -> builder, interceptors);
  }

  Channel channel(UnaryOperator<NettyChannelBuilder> options, ClientInterceptor... interceptors) {
    ManagedChannel plain = options.apply(NettyChannelBuilder.forAddress("127.0.0.1", port()).usePlaintext()).build();
    channels.add(plain);
    return ClientInterceptors.intercept(plain, interceptors);
  }

  /** Ends the server alone. */
  void stop() throws InterruptedException {
    server.shutdownNow();
    server.awaitTermination(30, TimeUnit.SECONDS);
  }

  @Override
  public void close() throws InterruptedException {
    channels.forEach(ManagedChannel::shutdownNow);
    for (ManagedChannel channel : channels) {
      channel.awaitTermination(30, TimeUnit.SECONDS);
    }
    stop();
    pool.shutdownNow();
  }

  private static MethodDescriptor<String, String> method(MethodType type, String name) {
    return MethodDescriptor.<String, String>newBuilder()
        .setType(type)
        .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, name))
        .setRequestMarshaller(new Text())
        .setResponseMarshaller(new Text())
        .build();
  }

  /** What calls and answers carry. */
  static class Text implements Marshaller<String> {
    @Override
    public InputStream stream(String value) {
      return new ByteArrayInputStream(value.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public String parse(InputStream stream) {
      try {
        return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
