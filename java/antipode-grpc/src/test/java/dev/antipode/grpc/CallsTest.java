package dev.antipode.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Contexts;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.inprocess.InProcessChannelBuilder;
import io.grpc.inprocess.InProcessServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Unary calls through real sockets: metadata in, trailing metadata out (PROP-15, PROP-22, PROP-25). */
@ExtendWith(AntipodeIsolated.class)
class CallsTest {
  private static final WriteId BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042);
  private static final WriteId AFTER = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57);
  private static final String FORGED = "1~forged..8371ab90c2d4e6f1.7";
  private static final Metadata.Key<String> LINEAGE = key("antipode-lineage");
  private static final Metadata.Key<String> BAGGAGE = key("baggage");
  private static final Metadata.Key<String> APP = key("app");
  private static final Metadata SHARED = new Metadata();

  static {
    SHARED.put(APP, "1");
  }

  private final BlockingQueue<LineageScope> scopes = new LinkedBlockingQueue<>();
  private final AtomicReference<Lineage> came = new AtomicReference<>();
  private final AtomicReference<Metadata> metadata = new AtomicReference<>();

  private static Metadata.Key<String> key(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  /** Notes what came in, writes, and ends as the request says. */
  private void serve(String request, StreamObserver<String> answer) {
    LineageScope scope = LineageScope.current();
    scopes.add(scope);
    came.set(scope.lineage());
    Antipode.append(AFTER);
    switch (request) {
      case "refuse" -> answer.onError(new StatusRuntimeException(Status.NOT_FOUND, SHARED));
      case "throw" -> throw new IllegalStateException("broken");
      case "answer and throw" -> {
        answer.onNext("done");
        answer.onCompleted();
        throw new IllegalStateException("broken");
      }
      default -> {
        answer.onNext("done");
        answer.onCompleted();
      }
    }
  }

  private Posts posts(ServerInterceptor... interceptors) {
    return new Posts(Posts.GET, ServerCalls.asyncUnaryCall(this::serve), interceptors);
  }

  private Posts posts() {
    return posts(noting(), AntipodeGrpc.serverInterceptor());
  }

  /** Behind ours: keeps the metadata that the application sees. */
  private ServerInterceptor noting() {
    return new ServerInterceptor() {
      @Override
      public <Q, A> ServerCall.Listener<Q> interceptCall(
          ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
        metadata.set(headers);
        return next.startCall(call, headers);
      }
    };
  }

  private static CallOptions soon() {
    return CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
  }

  private static String call(Channel channel, String request) {
    return ClientCalls.blockingUnaryCall(channel, Posts.GET, soon(), request);
  }

  private LineageScope served() throws InterruptedException {
    LineageScope scope = scopes.poll(30, TimeUnit.SECONDS);
    assertThat(scope).isNotNull();
    return scope;
  }

  private static void awaitClosed(LineageScope scope) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (!scope.isClosed() && System.nanoTime() < end) {
      Thread.sleep(1);
    }
    assertThat(scope.isClosed()).isTrue();
  }

  /** PROP-15, PROP-22: the answer's lineage is in the caller's scope before the caller has the answer. */
  @ParameterizedTest
  @ValueSource(strings = {"blocking", "future", "observer"})
  void thereAndBack(String way) throws Exception {
    try (Posts posts = posts(); LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      Channel channel = posts.channel();
      Lineage whole = Lineage.of(BEFORE, AFTER);
      switch (way) {
        case "blocking" -> assertThat(call(channel, "go")).isEqualTo("done");
        case "future" -> assertThat(ClientCalls.futureUnaryCall(channel.newCall(Posts.GET, soon()), "go")
            .get(30, TimeUnit.SECONDS)).isEqualTo("done");
        default -> {
          CompletableFuture<Lineage> seen = new CompletableFuture<>();
          ClientCalls.asyncUnaryCall(channel.newCall(Posts.GET, soon()), "go", new StreamObserver<>() {
            @Override
            public void onNext(String value) {
              seen.complete(LineageScope.current().lineage()); // in a thread of the channel
            }

            @Override
            public void onError(Throwable error) {
              seen.completeExceptionally(error);
            }

            @Override
            public void onCompleted() {}
          });
          assertThat(seen.get(30, TimeUnit.SECONDS)).isEqualTo(whole);
        }
      }
      assertThat(scope.lineage()).isEqualTo(whole);
      assertThat(came.get()).isEqualTo(Lineage.of(BEFORE));
      awaitClosed(served());
      assertThat(metadata.get().get(LINEAGE)).isNull();
    }
  }

  /** PROP-15: the writes of a call that fails come back too, and what the application shares stays as it is. */
  @ParameterizedTest
  @ValueSource(strings = {"refuse", "throw"})
  void aCallThatEndsInAnError(String request) throws Exception {
    try (Posts posts = posts(); LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> call(posts.channel(), request))
          .isInstanceOfSatisfying(StatusRuntimeException.class, error -> {
            Status status = error.getStatus();
            if (request.equals("refuse")) {
              assertThat(status.getCode()).isEqualTo(Status.Code.NOT_FOUND);
              assertThat(error.getTrailers().get(APP)).isEqualTo("1");
            } else {
              assertThat(status.getCode()).isEqualTo(Status.Code.UNKNOWN);
              assertThat(status.getDescription()).isEqualTo("Application error processing RPC");
            }
            assertThat(error.getTrailers().getAll(LINEAGE)).containsExactly(Lineage.of(AFTER).serialize());
          });
      assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(SHARED.keys()).containsExactly("app");
      awaitClosed(served());
    }
  }

  /** PROP-15: likewise where an interceptor fails before there is a listener, and where a handler fails after the end. */
  @Test
  void aCallThatFailsOutsideOfItsMessages() throws Exception {
    ServerInterceptor failing = new ServerInterceptor() {
      @Override
      public <Q, A> ServerCall.Listener<Q> interceptCall(
          ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
        scopes.add(LineageScope.current());
        Antipode.append(AFTER);
        throw Status.PERMISSION_DENIED.withDescription("not you").asRuntimeException();
      }
    };
    try (Posts posts = posts(failing, AntipodeGrpc.serverInterceptor()); LineageScope scope = Antipode.scope()) {
      assertThatThrownBy(() -> call(posts.channel(), "go"))
          .isInstanceOfSatisfying(StatusRuntimeException.class, error -> {
            assertThat(error.getStatus().getCode()).isEqualTo(Status.Code.PERMISSION_DENIED);
            assertThat(error.getStatus().getDescription()).isEqualTo("not you");
          });
      assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
      awaitClosed(served());
    }
    try (Posts posts = posts(); LineageScope scope = Antipode.scope()) {
      assertThat(call(posts.channel(), "answer and throw")).isEqualTo("done");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
    }
  }

  /** PROP-25. */
  @Test
  void theDeadlineOfTheCallIsTheScopes() throws Exception {
    try (Posts posts = posts()) {
      call(posts.channel(), "go");
      OptionalLong deadline = served().deadline();
      assertThat(deadline).isPresent();
      assertThat(Duration.ofNanos(deadline.getAsLong() - System.nanoTime()))
          .isBetween(Duration.ofSeconds(1), Duration.ofSeconds(31));
      ClientCalls.blockingUnaryCall(posts.channel(), Posts.GET, CallOptions.DEFAULT, "go");
      assertThat(served().deadline()).isEmpty();
    }
  }

  /** TRUST-10: a gateway passes X-Forwarded-For on as metadata. TRUST-5: what was dropped is gone. */
  @Test
  void aForgedLineageFromOutside() throws Exception {
    Metadata forged = new Metadata();
    forged.put(BAGGAGE, "user=7,antipode=" + FORGED);
    forged.put(key("x-forwarded-for"), "203.0.113.9");
    AtomicReference<Metadata> trailers = new AtomicReference<>();
    try (Posts posts = posts(); CapturedLogs logs = new CapturedLogs()) {
      Channel plain = posts.channel(
          MetadataUtils.newAttachHeadersInterceptor(forged),
          MetadataUtils.newCaptureMetadataInterceptor(new AtomicReference<>(), trailers));
      assertThat(call(plain, "go")).isEqualTo("done");
      assertThat(came.get().hasContent()).isFalse();
      assertThat(trailers.get().get(LINEAGE)).isNull();
      assertThat(metadata.get().get(BAGGAGE)).isEqualTo("user=7");
      assertThat(logs.text()).contains("ANTIPODE_FORWARDED=ignore");
    }
  }

  /** PROP-23: no value of these names ends a call, and names that no key can be made of are none of our business. */
  @Test
  void noMetadataIsAnError() throws Exception {
    try (Posts posts = posts()) {
      for (String value : List.of("hello", "antipode=%zz", "antipode=1~" + "x".repeat(3000), ",;=", "")) {
        Metadata given = new Metadata();
        given.put(BAGGAGE, value);
        given.put(LINEAGE, value);
        given.put(Metadata.Key.of("antipode-lineage-bin", Metadata.BINARY_BYTE_MARSHALLER), new byte[] {0, -1});
        assertThat(call(posts.channel(MetadataUtils.newAttachHeadersInterceptor(given)), "go")).isEqualTo("done");
        assertThat(came.get().isComplete()).isFalse();
      }
    }
  }

  /** TRUST-4. */
  @Test
  void anEdgeTakesAndAnswersNothing() throws Exception {
    try (Posts posts = posts(AntipodeGrpc.serverInterceptor(true));
        LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      call(posts.channel(), "go");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
      assertThat(came.get().hasContent()).isFalse();
    }
  }

  /** TRUST-15, TRUST-29: the channel's authority decides, or the target that was named. */
  @ParameterizedTest
  @ValueSource(strings = {"authority", "target"})
  void nothingGoesToAHostThatIsNotOurs(String by) throws Exception {
    Metadata given = new Metadata();
    given.put(BAGGAGE, "a=1,antipode=" + FORGED);
    try (Posts posts = posts(); CapturedLogs logs = new CapturedLogs();
        LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      // Interceptors that are named later are called first.
      Channel channel = by.equals("authority")
          ? posts.channel(
              builder -> builder.overrideAuthority("api.example.com"),
              AntipodeGrpc.clientInterceptor(),
              MetadataUtils.newAttachHeadersInterceptor(given))
          : posts.channel(
              AntipodeGrpc.clientInterceptor("dns:///api.example.com:443"),
              MetadataUtils.newAttachHeadersInterceptor(given));
      call(channel, "go");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
      assertThat(came.get().hasContent()).isFalse();
      assertThat(metadata.get().get(BAGGAGE)).isEqualTo("a=1");
      assertThat(logs.text()).contains("api.example.com").contains("request out");
    }
  }

  /** PROP-22: a second interceptor of ours finds the scope of the first. */
  @Test
  void nestedInterceptorsShareOneScope() throws Exception {
    try (Posts posts = posts(AntipodeGrpc.serverInterceptor(), AntipodeGrpc.serverInterceptor());
        LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      call(posts.channel(), "go");
      assertThat(came.get()).isEqualTo(Lineage.of(BEFORE));
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
    }
  }

  /** PROP-22: calls inside a process have a scope of their own, and bring its writes back. */
  @Test
  void inProcess() throws Exception {
    Server server = InProcessServerBuilder.forName("posts").directExecutor()
        .addService(Posts.service(Posts.GET, ServerCalls.asyncUnaryCall(this::serve)))
        .intercept(AntipodeGrpc.serverInterceptor())
        .build().start();
    ManagedChannel plain = InProcessChannelBuilder.forName("posts").directExecutor().build();
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      Channel channel = ClientInterceptors.intercept(plain, AntipodeGrpc.clientInterceptor());
      assertThat(call(channel, "go")).isEqualTo("done");
      assertThat(served()).isNotSameAs(scope);
      assertThat(came.get()).isEqualTo(Lineage.of(BEFORE));
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
      assertThat(LineageScope.current()).isSameAs(scope);
    } finally {
      plain.shutdownNow();
      server.shutdownNow();
    }
  }

  /** PROP-14: from service to service, there and all the way back. */
  @Test
  void aServiceThatCallsAnother() throws Exception {
    WriteId own = WriteId.position("notifications", "e", 3);
    try (Posts storage = posts()) {
      Channel toStorage = storage.channel();
      try (Posts gateway = Posts.serving(Posts.GET, ServerCalls.asyncUnaryCall((request, answer) -> {
        Antipode.append(own);
        answer.onNext(call(toStorage, request));
        answer.onCompleted();
      })); LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
        assertThat(call(gateway.channel(), "go")).isEqualTo("done");
        assertThat(came.get()).isEqualTo(Lineage.of(BEFORE, own));
        assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, own, AFTER));
      }
    }
  }

  /** PROP-26. */
  @Test
  void offForwardsAndAddsNothing() throws Exception {
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    AtomicReference<Metadata> trailers = new AtomicReference<>();
    try (Posts posts = posts(); LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      Channel channel = posts.channel(
          MetadataUtils.newCaptureMetadataInterceptor(new AtomicReference<>(), trailers), AntipodeGrpc.clientInterceptor());
      call(channel, "go");
      assertThat(came.get()).isEqualTo(Lineage.of(BEFORE));
      assertThat(trailers.get().get(LINEAGE)).isNull();
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
    }
  }

  /** PROP-16: what is written behind the end of the call is not in its trailer, and the scope ends with the call. */
  @Test
  void whatComesAfterTheEndIsLate() throws Exception {
    WriteId late = WriteId.position("users", "e", 1);
    ServerCallHandler<String, String> handler = ServerCalls.asyncUnaryCall((request, answer) -> {
      serve(request, answer);
      Antipode.append(late);
    });
    try (Posts posts = Posts.serving(Posts.GET, handler); LineageScope scope = Antipode.scope()) {
      call(posts.channel(), "go");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
      awaitClosed(served());
    }
  }

  /** The application's own gRPC Context and interceptors outside of ours stay as they are. */
  @Test
  void theContextOfTheApplicationStays() throws Exception {
    io.grpc.Context.Key<String> tenant = io.grpc.Context.key("tenant");
    AtomicReference<String> seen = new AtomicReference<>();
    ServerInterceptor outside = new ServerInterceptor() {
      @Override
      public <Q, A> ServerCall.Listener<Q> interceptCall(
          ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
        return Contexts.interceptCall(io.grpc.Context.current().withValue(tenant, "acme"), call, headers, next);
      }
    };
    ServerCallHandler<String, String> handler = ServerCalls.asyncUnaryCall((request, answer) -> {
      seen.set(tenant.get());
      serve(request, answer);
    });
    try (Posts posts = new Posts(Posts.GET, handler, AntipodeGrpc.serverInterceptor(), outside)) {
      call(posts.channel(), "go");
      assertThat(seen.get()).isEqualTo("acme");
    }
  }
}
