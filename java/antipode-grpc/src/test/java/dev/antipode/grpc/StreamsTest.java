package dev.antipode.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.Status;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Streams through real sockets: one scope each, current in every callback (SCOPE-8, SCOPE-11, SCOPE-12, PROP-15). */
@ExtendWith(AntipodeIsolated.class)
class StreamsTest {
  private static final WriteId BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042);

  private final List<LineageScope> scopes = Collections.synchronizedList(new ArrayList<>());

  private static WriteId write(String name) {
    return WriteId.position("store-" + name, "e", 1);
  }

  private static CallOptions soon() {
    return CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
  }

  private void note(String name) {
    scopes.add(LineageScope.current());
    Antipode.append(write(name));
  }

  /** Takes what a stream brings, and in which scope its callbacks run. */
  private static final class Answers implements StreamObserver<String> {
    private final List<String> values = new ArrayList<>();
    private final List<LineageScope> callers = new ArrayList<>();
    private final CompletableFuture<List<String>> all = new CompletableFuture<>();

    @Override
    public synchronized void onNext(String value) {
      values.add(value);
      callers.add(LineageScope.current());
    }

    @Override
    public void onError(Throwable error) {
      all.completeExceptionally(error);
    }

    @Override
    public synchronized void onCompleted() {
      callers.add(LineageScope.current());
      all.complete(values);
    }

    List<String> await() throws Exception {
      return all.get(30, TimeUnit.SECONDS);
    }
  }

  /** Notes every message and the end. */
  private StreamObserver<String> noting(StreamObserver<String> answer, boolean echoes) {
    note("start");
    return new StreamObserver<>() {
      @Override
      public void onNext(String value) {
        note(value);
        if (echoes) {
          answer.onNext(value);
        }
      }

      @Override
      public void onError(Throwable error) {
        note("error");
      }

      @Override
      public void onCompleted() {
        note("end");
        if (!echoes) {
          answer.onNext("done");
        }
        answer.onCompleted();
      }
    };
  }

  @Test
  void fromTheClient() throws Exception {
    try (Posts posts = Posts.serving(Posts.UPLOAD, ServerCalls.asyncClientStreamingCall(out -> noting(out, false)));
        LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      Answers answers = new Answers();
      StreamObserver<String> out =
          ClientCalls.asyncClientStreamingCall(posts.channel().newCall(Posts.UPLOAD, soon()), answers);
      out.onNext("a");
      out.onNext("b");
      out.onCompleted();
      assertThat(answers.await()).containsExactly("done");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, write("start"), write("a"), write("b"), write("end")));
      assertThat(answers.callers).containsOnly(scope);
      assertOneScope(4);
    }
  }

  @Test
  void fromTheServer() throws Exception {
    try (Posts posts = Posts.serving(Posts.LIST, ServerCalls.asyncServerStreamingCall((request, out) -> {
      note("first");
      out.onNext("a");
      note("second");
      out.onNext("b");
      out.onCompleted();
    })); LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      List<String> values = new ArrayList<>();
      ClientCalls.blockingServerStreamingCall(posts.channel(), Posts.LIST, soon(), "go").forEachRemaining(values::add);
      assertThat(values).containsExactly("a", "b");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, write("first"), write("second")));
      assertOneScope(2);
    }
  }

  @Test
  void bothWays() throws Exception {
    try (Posts posts = Posts.serving(Posts.TALK, ServerCalls.asyncBidiStreamingCall(out -> noting(out, true)));
        LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      Answers answers = new Answers();
      StreamObserver<String> out = ClientCalls.asyncBidiStreamingCall(posts.channel().newCall(Posts.TALK, soon()), answers);
      out.onNext("a");
      out.onNext("b");
      out.onCompleted();
      assertThat(answers.await()).containsExactly("a", "b");
      assertThat(answers.callers).hasSize(3).containsOnly(scope);
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, write("start"), write("a"), write("b"), write("end")));
      assertOneScope(4);
    }
  }

  private void assertOneScope(int callbacks) {
    assertThat(scopes).hasSize(callbacks).doesNotContainNull();
    assertThat(scopes.stream().distinct()).hasSize(1);
  }

  /** Answers each message with what its own scope holds. */
  private StreamObserver<String> scoped(StreamObserver<String> answer) {
    return new StreamObserver<>() {
      @Override
      public void onNext(String message) {
        try (LineageScope scope = Antipode.messageScope(message)) {
          Antipode.append(write("inside"));
          answer.onNext(Antipode.serialize());
        }
        note("outside");
      }

      @Override
      public void onError(Throwable error) {}

      @Override
      public void onCompleted() {
        answer.onCompleted();
      }
    };
  }

  /** SCOPE-6, SCOPE-8: one a message where the handler asks, from the lineage that the message holds. */
  @Test
  void oneScopeAMessageWhereTheHandlerAsks() throws Exception {
    try (Posts posts = Posts.serving(Posts.TALK, ServerCalls.asyncBidiStreamingCall(this::scoped));
        LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      Answers answers = new Answers();
      StreamObserver<String> out = ClientCalls.asyncBidiStreamingCall(posts.channel().newCall(Posts.TALK, soon()), answers);
      for (String name : List.of("a", "b")) {
        out.onNext(Lineage.of(write(name)).serialize());
      }
      out.onCompleted();
      assertThat(answers.await()).containsExactly(
          Lineage.of(write("a"), write("inside")).serialize(), Lineage.of(write("b"), write("inside")).serialize());
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, write("outside")));
      assertOneScope(2);
    }
  }

  /** SCOPE-3, SCOPE-11: in every callback of a listener, in whichever thread of the server's executor it comes. */
  @Test
  void theScopeIsCurrentInEveryCallback() throws Exception {
    Map<String, LineageScope> seen = new ConcurrentHashMap<>();
    BlockingQueue<String> ends = new LinkedBlockingQueue<>();
    ServerCallHandler<String, String> handler = new ServerCallHandler<>() {
      @Override
      public ServerCall.Listener<String> startCall(ServerCall<String, String> call, Metadata headers) {
        seen.put("start", LineageScope.current());
        call.request(2);
        return new ServerCall.Listener<>() {
          @Override
          public void onReady() {
            seen.put("ready", LineageScope.current());
          }

          @Override
          public void onMessage(String message) {
            seen.put("message", LineageScope.current());
          }

          @Override
          public void onHalfClose() {
            seen.put("half close", LineageScope.current());
            call.sendHeaders(new Metadata());
            call.sendMessage("done");
            call.close(Status.OK, new Metadata());
          }

          @Override
          public void onComplete() {
            seen.put("complete", LineageScope.current());
            ends.add("complete");
          }

          @Override
          public void onCancel() {
            seen.put("cancel", LineageScope.current());
            ends.add("cancel");
          }
        };
      }
    };
    try (Posts posts = Posts.serving(Posts.TALK, handler)) {
      Answers answers = new Answers();
      StreamObserver<String> out = ClientCalls.asyncBidiStreamingCall(posts.channel().newCall(Posts.TALK, soon()), answers);
      out.onNext("go");
      out.onCompleted();
      assertThat(answers.await()).containsExactly("done");
      assertThat(ends.poll(30, TimeUnit.SECONDS)).isEqualTo("complete");
      assertThat(seen.keySet()).containsExactlyInAnyOrder("start", "ready", "message", "half close", "complete");
      assertThat(seen.values().stream().distinct()).hasSize(1);
      awaitClosed(seen.get("start"));

      seen.clear();
      StreamObserver<String> cancelled =
          ClientCalls.asyncBidiStreamingCall(posts.channel().newCall(Posts.TALK, soon()), new Answers());
      cancelled.onNext("go");
      awaitKey(seen, "message");
      cancelled.onError(new IllegalStateException("enough"));
      assertThat(ends.poll(30, TimeUnit.SECONDS)).isEqualTo("cancel");
      assertThat(seen.values().stream().distinct()).hasSize(1);
      awaitClosed(seen.get("start"));
    }
  }

  /** SCOPE-12: a handler that answers from a thread of its own; the scope lives as long as the call. */
  @Test
  void anExecutorThatKeepsTheScope() throws Exception {
    ExecutorService plain = Executors.newSingleThreadExecutor();
    ExecutorService pool = Antipode.carryAll(plain);
    ServerCallHandler<String, String> handler = ServerCalls.asyncUnaryCall((request, out) -> {
      note("callback");
      pool.execute(() -> {
        note("pool");
        out.onNext("done");
        out.onCompleted();
      });
    });
    try (Posts posts = Posts.serving(Posts.GET, handler); LineageScope scope = Antipode.scope()) {
      assertThat(ClientCalls.blockingUnaryCall(posts.channel(), Posts.GET, soon(), "go")).isEqualTo("done");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(write("callback"), write("pool")));
      assertOneScope(2);
    } finally {
      plain.shutdownNow();
    }
  }

  private static void awaitClosed(LineageScope scope) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (!scope.isClosed() && System.nanoTime() < end) {
      Thread.sleep(1);
    }
    assertThat(scope.isClosed()).isTrue();
  }

  private static void awaitKey(Map<String, ?> map, String key) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (!map.containsKey(key) && System.nanoTime() < end) {
      Thread.sleep(1);
    }
    assertThat(map).containsKey(key);
  }
}
