package dev.antipode.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierIncompleteException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Gap;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.memory.MemoryStore;
import dev.antipode.testing.AntipodeIsolated;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The caller of a response stream has messages in hand before the trailer brings their lineage (PROP-28). */
@ExtendWith(AntipodeIsolated.class)
class OpenStreamsTest {
  private static final WriteId AFTER = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57);

  private final CountDownLatch leave = new CountDownLatch(1);
  private final CountDownLatch next = new CountDownLatch(1);

  private static CallOptions soon() {
    return CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Writes, sends two messages, and ends when the test lets it. */
  private Posts listing(Status end) {
    return Posts.serving(Posts.LIST, ServerCalls.asyncServerStreamingCall((request, out) -> {
      Antipode.append(AFTER);
      out.onNext("a");
      await(next);
      out.onNext("b");
      await(leave);
      if (end.isOk()) {
        out.onCompleted();
      } else {
        out.onError(end.asRuntimeException(new Metadata()));
      }
    }));
  }

  private static Iterator<String> list(Channel channel) {
    return ClientCalls.blockingServerStreamingCall(channel, Posts.LIST, soon(), "go");
  }

  private static BarrierResult look() {
    return Antipode.barrier(BarrierOptions.defaults().stores("s"));
  }

  @Test
  void theScopeIsIncompleteUntilTheTrailer() throws Exception {
    MemoryStore.named("s").client("a");
    try (Posts posts = listing(Status.OK); LineageScope scope = Antipode.scope()) {
      assertThat(look().complete()).isTrue();
      Iterator<String> messages = list(posts.channel());
      assertThat(messages.next()).isEqualTo("a");
      assertThat(scope.lineage().incomplete()).containsExactly("");
      assertThat(Antipode.deserialize(Antipode.serialize()).incomplete()).containsExactly("");
      BarrierResult seen = look();
      assertThat(seen.satisfied()).isTrue();
      assertThat(seen.complete()).isFalse();
      assertThat(seen.gaps()).extracting(Gap::reason).containsExactly("streaming");
      assertThatThrownBy(() -> Antipode.barrier(BarrierOptions.defaults().stores("s").requireComplete(true)))
          .isInstanceOf(BarrierIncompleteException.class)
          .hasMessageContaining("response stream");
      next.countDown();
      assertThat(messages.next()).isEqualTo("b");
      leave.countDown();
      assertThat(messages.hasNext()).isFalse();
      assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(scope.gaps()).isEmpty();
      assertThat(look().complete()).isTrue();
    }
  }

  /** Nor is a proof of before taken for what the messages depend on: the free path (BAR-35) ends where a stream begins. */
  @Test
  void aProofFromBeforeDoesNotSay() throws Exception {
    MemoryStore store = MemoryStore.named("s");
    try (Posts posts = listing(Status.OK); LineageScope scope = Antipode.scope()) {
      store.client("a").set("k", "v");
      assertThat(Antipode.barrier().complete()).isTrue();
      assertThat(Antipode.barrier().complete()).isTrue();
      Iterator<String> messages = list(posts.channel());
      messages.next();
      assertThat(Antipode.barrier().complete()).isFalse();
      next.countDown();
      leave.countDown();
      messages.forEachRemaining(each -> {});
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  /** An error that the server answers brings the lineage, too (PROP-15). */
  @Test
  void anAnsweredErrorEndsIt() throws Exception {
    try (Posts posts = listing(Status.UNAVAILABLE); LineageScope scope = Antipode.scope()) {
      Iterator<String> messages = list(posts.channel());
      messages.next();
      next.countDown();
      messages.next();
      leave.countDown();
      assertThatThrownBy(messages::hasNext).isInstanceOf(StatusRuntimeException.class);
      assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(scope.gaps()).isEmpty();
    }
  }

  /** A stream that ends without the server's word is a loss (PROP-27). */
  @Test
  void aCancelledStreamIsALoss() throws Exception {
    try (Posts posts = listing(Status.OK); LineageScope scope = Antipode.scope()) {
      BlockingQueue<String> seen = new LinkedBlockingQueue<>();
      ClientCall<String, String> call = posts.channel().newCall(Posts.LIST, soon());
      call.start(new ClientCall.Listener<>() {
        @Override
        public void onMessage(String message) {
          seen.add(message);
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
          seen.add(status.getCode().name());
        }
      }, new Metadata());
      call.sendMessage("go");
      call.halfClose();
      call.request(1);
      assertThat(seen.poll(30, TimeUnit.SECONDS)).isEqualTo("a");
      assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("streaming");
      call.cancel("enough", null);
      assertThat(seen.poll(30, TimeUnit.SECONDS)).isEqualTo("CANCELLED");
      assertThat(scope.lineage().incomplete()).containsExactly("");
      assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("unanswered");
      next.countDown();
      leave.countDown();
    }
  }

  /** Settings that change while a stream is open hide no loss: neither of one that is given up … */
  @ParameterizedTest
  @MethodSource("without")
  void aStreamThatIsGivenUpIsALossWhateverIsSetMeanwhile(Settings changed) throws Exception {
    Settings before = Antipode.settings();
    try (Posts posts = listing(Status.OK); LineageScope scope = Antipode.scope()) {
      BlockingQueue<String> seen = new LinkedBlockingQueue<>();
      ClientCall<String, String> call = opened(posts, seen);
      Antipode.configure(changed);
      call.cancel("enough", null);
      assertThat(seen.poll(30, TimeUnit.SECONDS)).isEqualTo("CANCELLED");
      Antipode.configure(before);
      assertThat(scope.lineage().incomplete()).containsExactly("");
      assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("unanswered");
      next.countDown();
      leave.countDown();
    }
  }

  /** … nor of one whose trailer is not taken any more. */
  @ParameterizedTest
  @MethodSource("without")
  void aTrailerThatIsNotTakenIsALossWhateverIsSetMeanwhile(Settings changed) throws Exception {
    Settings before = Antipode.settings();
    try (Posts posts = elsewhere(Lineage.of(AFTER)); LineageScope scope = Antipode.scope()) {
      BlockingQueue<String> seen = new LinkedBlockingQueue<>();
      ClientCall<String, String> call = opened(posts, seen);
      Antipode.configure(changed);
      call.request(1);
      leave.countDown();
      assertThat(seen.poll(30, TimeUnit.SECONDS)).isEqualTo("OK");
      Antipode.configure(before);
      assertThat(scope.lineage().incomplete()).containsExactly("");
      assertThat(scope.gaps()).extracting(Gap::reason).contains("unanswered");
    }
  }

  /** A service of another process, whose trailer has this lineage: our settings are none of its own. */
  private Posts elsewhere(Lineage lineage) {
    Metadata.Key<String> name = Metadata.Key.of("antipode-lineage", Metadata.ASCII_STRING_MARSHALLER);
    ServerInterceptor trailing = new ServerInterceptor() {
      @Override
      public <Q, A> ServerCall.Listener<Q> interceptCall(
          ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> handler) {
        return handler.startCall(new SimpleForwardingServerCall<>(call) {
          @Override
          public void close(Status status, Metadata trailers) {
            trailers.put(name, lineage.serialize());
            super.close(status, trailers);
          }
        }, headers);
      }
    };
    return new Posts(Posts.LIST, ServerCalls.asyncServerStreamingCall((request, out) -> {
      out.onNext("a");
      await(leave);
      out.onCompleted();
    }), trailing);
  }

  static List<Settings> without() {
    return List.of(Settings.defaults().mode(Mode.OFF), Settings.defaults().trust(Trust.NONE));
  }

  private static ClientCall<String, String> opened(Posts posts, BlockingQueue<String> seen) throws InterruptedException {
    ClientCall<String, String> call = posts.channel().newCall(Posts.LIST, soon());
    call.start(new ClientCall.Listener<>() {
      @Override
      public void onMessage(String message) {
        seen.add(message);
      }

      @Override
      public void onClose(Status status, Metadata trailers) {
        seen.add(status.getCode().name());
      }
    }, new Metadata());
    call.sendMessage("go");
    call.halfClose();
    call.request(1);
    assertThat(seen.poll(30, TimeUnit.SECONDS)).isEqualTo("a");
    return call;
  }

  /** Where the application vouches that nothing is missing, it does so for the messages until then (LIN-26). */
  @Test
  void vouchingHoldsUntilTheNextMessage() throws Exception {
    try (Posts posts = listing(Status.OK); LineageScope scope = Antipode.scope()) {
      Iterator<String> messages = list(posts.channel());
      messages.next();
      scope.removeIncomplete();
      assertThat(scope.lineage().isComplete()).isTrue();
      next.countDown();
      messages.next();
      assertThat(scope.lineage().incomplete()).containsExactly("");
      leave.countDown();
      assertThat(messages.hasNext()).isFalse();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  /** From a host that is not approved nothing is expected (PROP-27, TRUST-3). */
  @Test
  void aStrangersStreamIsNone() throws Exception {
    try (Posts posts = listing(Status.OK); LineageScope scope = Antipode.scope()) {
      Iterator<String> messages = list(posts.channel(AntipodeGrpc.clientInterceptor("203.0.113.9:80")));
      messages.next();
      assertThat(scope.lineage().isComplete()).isTrue();
      next.countDown();
      leave.countDown();
      messages.forEachRemaining(each -> {});
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }
}
