package dev.antipode.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.Gap;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCallHandler;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Calls that brought no answer, and those that gRPC repeats by itself (PROP-27). */
@ExtendWith(AntipodeIsolated.class)
class LostCallsTest {
  private static final Metadata.Key<String> PREVIOUS =
      Metadata.Key.of("antipode-previous-attempts", Metadata.ASCII_STRING_MARSHALLER);
  private static final WriteId AFTER = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57);

  private final CountDownLatch arrived = new CountDownLatch(1);
  private final CountDownLatch leave = new CountDownLatch(1);

  /** Writes, and does not answer before the test lets it. */
  private Posts silent() {
    return Posts.serving(Posts.GET, ServerCalls.asyncUnaryCall((request, answer) -> {
      Antipode.append(AFTER);
      arrived.countDown();
      try {
        assertThat(leave.await(30, TimeUnit.SECONDS)).isTrue();
      } catch (InterruptedException e) {
        return;
      }
      answer.onNext("done");
      answer.onCompleted();
    }));
  }

  private static Status.Code codeOf(Channel channel, CallOptions options) {
    try {
      ClientCalls.blockingUnaryCall(channel, Posts.GET, options, "go");
      return Status.Code.OK;
    } catch (StatusRuntimeException e) {
      return e.getStatus().getCode();
    }
  }

  private static void assertLost(LineageScope scope) {
    assertThat(scope.lineage().incomplete()).containsExactly("");
    assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("unanswered");
  }

  @Test
  void aDeadlineIsALoss() throws Exception {
    try (Posts posts = silent(); LineageScope scope = Antipode.scope()) {
      CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(300, TimeUnit.MILLISECONDS);
      assertThat(codeOf(posts.channel(), options)).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
      leave.countDown();
      assertLost(scope);
    }
  }

  @Test
  void aCancelledCallIsALoss() throws Exception {
    try (Posts posts = silent(); LineageScope scope = Antipode.scope()) {
      ClientCall<String, String> call = posts.channel().newCall(Posts.GET, CallOptions.DEFAULT);
      CompletableFuture<LineageScope> ended = new CompletableFuture<>();
      ClientCalls.asyncUnaryCall(call, "go", new StreamObserver<>() {
        @Override
        public void onNext(String value) {}

        @Override
        public void onError(Throwable error) {
          ended.complete(LineageScope.current());
        }

        @Override
        public void onCompleted() {}
      });
      assertThat(arrived.await(30, TimeUnit.SECONDS)).isTrue();
      call.cancel("enough", null);
      assertThat(ended.get(30, TimeUnit.SECONDS)).isSameAs(scope);
      leave.countDown();
      assertLost(scope);
    }
  }

  @Test
  void aServerThatDiesIsALoss() throws Exception {
    try (Posts posts = silent(); LineageScope scope = Antipode.scope()) {
      var call = posts.channel().newCall(Posts.GET, CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS));
      var future = ClientCalls.futureUnaryCall(call, "go");
      assertThat(arrived.await(30, TimeUnit.SECONDS)).isTrue();
      Thread stopping = new Thread(() -> {
        try {
          posts.stop();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      });
      stopping.start();
      assertThatThrownBy(() -> future.get(30, TimeUnit.SECONDS)).hasCauseInstanceOf(StatusRuntimeException.class);
      leave.countDown();
      stopping.join(30_000);
      assertLost(scope);
    }
  }

  /** The call ran there; what it answered is longer than this channel takes. */
  @Test
  void anAnswerThatIsTooLongIsALoss() throws Exception {
    try (Posts posts = Posts.serving(Posts.GET, ServerCalls.asyncUnaryCall((request, answer) -> {
      Antipode.append(AFTER);
      answer.onNext("x".repeat(2000));
      answer.onCompleted();
    })); LineageScope scope = Antipode.scope()) {
      Channel channel = posts.channel(builder -> builder.maxInboundMessageSize(1000), AntipodeGrpc.clientInterceptor());
      CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
      assertThat(codeOf(channel, options)).isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
      // The trailer may have arrived before the message was refused.
      assertThat(scope.lineage().isComplete() ? scope.lineage() : Lineage.of(AFTER)).isEqualTo(Lineage.of(AFTER));
      assertThat(scope.lineage().hasContent()).isTrue();
    }
  }

  /** What a stream brought before the client itself ended it came without its trailer. */
  @ParameterizedTest
  @CsvSource({"true, true", "true, false", "false, true", "false, false"})
  void aStreamThatTheClientCannotTakeIsALoss_PROP_28(boolean isTooLong, boolean hasTrailer) throws Exception {
    for (List<String> before : List.of(List.of("first"), List.<String>of())) {
      CountDownLatch over = new CountDownLatch(1);
      try (Posts posts = Posts.serving(Posts.LIST, ServerCalls.asyncServerStreamingCall((request, answer) -> {
        Antipode.append(AFTER);
        before.forEach(answer::onNext);
        answer.onNext("x".repeat(isTooLong ? 2000 : 500));
        try {
          assertThat(hasTrailer || over.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
          return;
        }
        answer.onCompleted();
      })); LineageScope scope = Antipode.scope()) {
        Channel channel =
            posts.channel(builder -> builder.maxInboundMessageSize(1000), AntipodeGrpc.clientInterceptor());
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
        List<String> got = new ArrayList<>();
        assertThatThrownBy(() -> ClientCalls.blockingServerStreamingCall(
                channel, Posts.LIST.toBuilder(new Short(), new Short()).build(), options, "go")
            .forEachRemaining(got::add))
            .isInstanceOfSatisfying(StatusRuntimeException.class, error -> assertThat(error.getStatus().getCode())
                .isEqualTo(isTooLong ? Status.Code.RESOURCE_EXHAUSTED : Status.Code.CANCELLED));
        assertThat(got).isEqualTo(before);
        if (hasTrailer && scope.lineage().isComplete()) { // it may have arrived before the message was refused
          assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
        } else {
          assertLost(scope);
        }
        over.countDown();
      }
    }
  }

  /** Text of 100 characters at most. */
  private static final class Short extends Posts.Text {
    @Override
    public String parse(InputStream stream) {
      String value = super.parse(stream);
      if (value.length() > 100) {
        throw new IllegalArgumentException("too long");
      }
      return value;
    }
  }

  @Test
  void aCallThatNeverLeftIsNone() throws Exception {
    Posts posts = silent();
    try (LineageScope scope = Antipode.scope()) {
      Channel channel = posts.channel();
      posts.stop();
      CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
      assertThat(codeOf(channel, options)).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(codeOf(channel, CallOptions.DEFAULT.withDeadlineAfter(-1, TimeUnit.SECONDS)))
          .isEqualTo(Status.Code.DEADLINE_EXCEEDED);
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(scope.gaps()).isEmpty();
    } finally {
      posts.close();
    }
  }

  /** An error that the server itself answered is no loss, whatever its code. */
  @Test
  void anAnsweredErrorIsNone() throws Exception {
    for (Status status : List.of(Status.UNAVAILABLE, Status.CANCELLED, Status.DEADLINE_EXCEEDED)) {
      try (Posts posts = Posts.serving(Posts.GET, ServerCalls.asyncUnaryCall((request, answer) -> {
        Antipode.append(AFTER);
        answer.onError(status.asRuntimeException(new Metadata()));
      })); LineageScope scope = Antipode.scope()) {
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
        assertThat(codeOf(posts.channel(), options)).isEqualTo(status.getCode());
        assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
        assertThat(scope.lineage().isComplete()).isTrue();
      }
    }
  }

  /** What a first attempt wrote comes back, too, where gRPC repeats the call; the server says how often (PROP-32). */
  @Test
  void aRepeatedCallBringsTheWritesOfEachAttempt() throws Exception {
    Map<String, Object> policy = Map.of(
        "methodConfig",
        List.of(Map.of(
            "name", List.of(Map.of("service", "antipode.test.Posts")),
            "retryPolicy", Map.of(
                "maxAttempts", 3.0,
                "initialBackoff", "0.01s",
                "maxBackoff", "0.05s",
                "backoffMultiplier", 1.0,
                "retryableStatusCodes", List.of("UNAVAILABLE")))));
    AtomicInteger attempts = new AtomicInteger();
    ServerCallHandler<String, String> handler = ServerCalls.asyncUnaryCall((request, answer) -> {
      Antipode.append(WriteId.position("store-" + attempts.incrementAndGet(), "e", 1));
      if (attempts.get() == 1) {
        answer.onError(Status.UNAVAILABLE.asRuntimeException());
      } else {
        answer.onNext("done");
        answer.onCompleted();
      }
    });
    ServerCallHandler<String, String> relay = (call, headers) -> handler.startCall(
        new SimpleForwardingServerCall<>(call) {
          @Override
          public void close(Status status, Metadata trailers) {
            if (attempts.get() == 2) {
              trailers.put(PREVIOUS, "7"); // of a call of its own, whose trailers it passes on
            }
            super.close(status, trailers);
          }
        }, headers);
    try (Posts posts = Posts.serving(Posts.GET, relay); LineageScope scope = Antipode.scope()) {
      Channel channel =
          posts.channel(builder -> builder.defaultServiceConfig(policy).enableRetry(), AntipodeGrpc.clientInterceptor());
      AtomicReference<Metadata> trailer = new AtomicReference<>();
      Channel seen = ClientInterceptors.intercept(
          channel, MetadataUtils.newCaptureMetadataInterceptor(new AtomicReference<>(), trailer));
      assertThat(codeOf(seen, CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS))).isEqualTo(Status.Code.OK);
      assertThat(attempts.get()).isEqualTo(2);
      assertThat(trailer.get().getAll(PREVIOUS)).containsExactly("1");
      codeOf(seen, CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS));
      assertThat(trailer.get().containsKey(PREVIOUS)).as("of a call that needed one attempt").isFalse();
      assertThat(scope.lineage()).isEqualTo(Lineage.of(
          WriteId.position("store-1", "e", 1), WriteId.position("store-2", "e", 1), WriteId.position("store-3", "e", 1)));
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }
}
