package dev.antipode.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.propagation.AntipodePropagator;
import dev.antipode.testing.AntipodeIsolated;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Beside an instrumentation that reads and writes baggage, on either side of ours (PROP-8, PROP-24). */
@ExtendWith(AntipodeIsolated.class)
@SuppressWarnings("deprecation") // a getter must have keys, which newer versions do not ask for
class InstrumentationTest {
  private static final WriteId BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042);
  private static final WriteId AFTER = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57);
  private static final Metadata.Key<String> BAGGAGE = Metadata.Key.of("baggage", Metadata.ASCII_STRING_MARSHALLER);

  private final AtomicReference<String> arrived = new AtomicReference<>();
  private final AtomicReference<Lineage> came = new AtomicReference<>();
  private final AtomicReference<Baggage> baggage = new AtomicReference<>();

  @BeforeEach
  void propagateBaggage() {
    GlobalOpenTelemetry.resetForTest();
    GlobalOpenTelemetry.set(OpenTelemetry.propagating(
        ContextPropagators.create(AntipodePropagator.round(W3CBaggagePropagator.getInstance()))));
  }

  @AfterEach
  void nothingIsGlobal() {
    GlobalOpenTelemetry.resetForTest();
  }

  private static TextMapPropagator propagator() {
    return GlobalOpenTelemetry.getPropagators().getTextMapPropagator();
  }

  /** As OpenTelemetry's: overwrites what stands in the metadata. */
  private static final class Injecting implements ClientInterceptor {
    @Override
    public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<A> listener, Metadata headers) {
          propagator().inject(Context.current(), headers, (carrier, name, value) -> {
            Metadata.Key<String> key = Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
            carrier.removeAll(key);
            carrier.put(key, value);
          });
          super.start(listener, headers);
        }
      };
    }
  }

  private static final TextMapGetter<Metadata> GETTER = new TextMapGetter<>() {
    @Override
    public Iterable<String> keys(Metadata carrier) {
      return carrier.keys();
    }

    @Override
    public String get(Metadata carrier, String key) {
      return carrier.get(Metadata.Key.of(key, Metadata.ASCII_STRING_MARSHALLER));
    }
  };

  private final class Extracting implements ServerInterceptor {
    @Override
    public <Q, A> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
      if (headers.get(BAGGAGE) != null && headers.get(BAGGAGE).contains("antipode")) {
        arrived.set(headers.get(BAGGAGE));
      }
      try (Scope current = propagator().extract(Context.current(), headers, GETTER).makeCurrent()) {
        return next.startCall(call, headers);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void eitherOrder(boolean oursOutside) throws Exception {
    ServerInterceptor[] atServer = oursOutside
        ? new ServerInterceptor[] {new Extracting(), AntipodeGrpc.serverInterceptor()}
        : new ServerInterceptor[] {AntipodeGrpc.serverInterceptor(), new Extracting()};
    ClientInterceptor[] atClient = oursOutside
        ? new ClientInterceptor[] {new Injecting(), AntipodeGrpc.clientInterceptor()}
        : new ClientInterceptor[] {AntipodeGrpc.clientInterceptor(), new Injecting()};
    ServerCallHandler<String, String> handler = ServerCalls.asyncUnaryCall((request, answer) -> {
      came.set(LineageScope.current().lineage());
      baggage.set(Baggage.current());
      Antipode.append(AFTER);
      answer.onNext("done");
      answer.onCompleted();
    });
    Baggage tenant = Baggage.builder().put("tenant", "acme").build();
    try (Posts posts = new Posts(Posts.GET, handler, atServer);
        Scope current = tenant.storeInContext(Context.current()).makeCurrent();
        LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
      assertThat(ClientCalls.blockingUnaryCall(posts.channel(atClient), Posts.GET, options, "go")).isEqualTo("done");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
      assertThat(came.get()).isEqualTo(Lineage.of(BEFORE));
      assertThat(baggage.get().getEntryValue("antipode")).isNull();
      if (!oursOutside) {
        assertThat(arrived.get()).isEqualTo("tenant=acme,antipode=" + Lineage.of(BEFORE).serialize());
      }
    }
  }
}
