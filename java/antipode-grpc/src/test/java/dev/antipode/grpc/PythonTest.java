package dev.antipode.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.lab.Repository;
import dev.antipode.testing.AntipodeIsolated;
import io.grpc.CallOptions;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Python and Java call each other: the lineage goes there, and what was written comes back (PROP-15). */
@ExtendWith(AntipodeIsolated.class)
class PythonTest {
  private static final WriteId BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042);
  private static final WriteId JAVAS = WriteId.position("java-store", "e", 7);
  private static final WriteId PYTHONS = WriteId.position("python-store", "e", 57);

  private static Process python(String script, String... arguments) throws IOException {
    List<String> command = new ArrayList<>(List.of(Repository.python().toString(), "-c", script));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command).redirectError(Redirect.INHERIT).start();
  }

  /** The next line that it prints; fails where none comes in time. */
  private static String line(BufferedReader output) throws Exception {
    return CompletableFuture.supplyAsync(() -> {
      try {
        return String.valueOf(output.readLine());
      } catch (IOException e) {
        return e.toString();
      }
    }).get(50, TimeUnit.SECONDS);
  }

  private static void end(Process process) throws InterruptedException {
    process.destroy();
    if (!process.waitFor(30, TimeUnit.SECONDS)) {
      process.destroyForcibly();
    }
  }

  @Test
  void javaCallsPython() throws Exception {
    Process process = python(
        """
        import sys, grpc, antipode, antipode.grpc
        from concurrent.futures import ThreadPoolExecutor

        class Handlers(grpc.GenericRpcHandler):
            def service(self, details):
                return grpc.unary_unary_rpc_method_handler(self.get) if details.method.endswith("/Get") else None
            def get(self, request, context):
                came = antipode.serialize()
                antipode.append(antipode.WriteId.position("python-store", "e", 57))
                if request == b"abort":
                    context.abort(grpc.StatusCode.NOT_FOUND, came)
                return came.encode()

        server = grpc.server(ThreadPoolExecutor(2), interceptors=[antipode.grpc.server_interceptor()])
        server.add_generic_rpc_handlers((Handlers(),))
        print(server.add_insecure_port("127.0.0.1:0"), flush=True)
        server.start()
        sys.stdin.read()
        server.stop(None)
        """);
    try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
      ManagedChannel plain =
          NettyChannelBuilder.forAddress("127.0.0.1", Integer.parseInt(line(output))).usePlaintext().build();
      try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
        var channel = ClientInterceptors.intercept(plain, AntipodeGrpc.clientInterceptor());
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(50, TimeUnit.SECONDS);
        assertThat(ClientCalls.blockingUnaryCall(channel, Posts.GET, options, "go"))
            .isEqualTo(Lineage.of(BEFORE).serialize());
        assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, PYTHONS));
        try (LineageScope other = Antipode.scope(Lineage.of(BEFORE))) {
          assertThat(ClientCalls.futureUnaryCall(channel.newCall(Posts.GET, options), "abort"))
              .failsWithin(50, TimeUnit.SECONDS).withThrowableThat().withMessageContaining("NOT_FOUND");
          assertThat(other.lineage()).isEqualTo(Lineage.of(BEFORE, PYTHONS));
        }
      } finally {
        plain.shutdownNow();
      }
    } finally {
      end(process);
    }
  }

  @Test
  void pythonCallsJava() throws Exception {
    AtomicReference<Lineage> came = new AtomicReference<>();
    try (Posts posts = Posts.serving(Posts.GET, ServerCalls.asyncUnaryCall((request, answer) -> {
      came.set(LineageScope.current().lineage());
      Antipode.append(JAVAS);
      if (request.equals("throw")) {
        throw new IllegalStateException("broken");
      }
      answer.onNext("done");
      answer.onCompleted();
    }))) {
      Process process = python(
          """
          import sys, grpc, antipode, antipode.grpc

          target = "127.0.0.1:" + sys.argv[1]
          with grpc.insecure_channel(target) as plain:
              channel = grpc.intercept_channel(plain, antipode.grpc.client_interceptor(target))
              call = channel.unary_unary("/antipode.test.Posts/Get")
              for request in (b"go", b"throw"):
                  with antipode.scope(antipode.Lineage.deserialize(sys.argv[2])) as scope:
                      try:
                          said = call(request, timeout=50).decode()
                      except grpc.RpcError as error:
                          said = error.code().name
                      print(said, scope.lineage.serialize(), flush=True)
          """,
          Integer.toString(posts.port()),
          Lineage.of(BEFORE).serialize());
      try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
        String whole = Lineage.of(BEFORE, JAVAS).serialize();
        assertThat(line(output)).isEqualTo("done " + whole);
        assertThat(came.get()).isEqualTo(Lineage.of(BEFORE));
        assertThat(line(output)).isEqualTo("UNKNOWN " + whole);
      } finally {
        end(process);
      }
    }
  }
}
