package dev.antipode.redis;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A server without replicas, outside the lab. */
final class LoneServer implements AutoCloseable {
  private final Path folder;
  private final Process process;
  private final int port;

  LoneServer(String... options) {
    try {
      folder = Files.createTempDirectory("antipode-lone-");
      port = freePort();
      List<String> command = new ArrayList<>(List.of(
          "redis-server", "--bind", "127.0.0.1", "--port", String.valueOf(port), "--save", "", "--dir",
          folder.toString()));
      command.addAll(List.of(options));
      process = new ProcessBuilder(command)
          .redirectErrorStream(true)
          .redirectOutput(folder.resolve("log").toFile())
          .start();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    RedisServers.until(this::answers, "the server listens");
  }

  int port() {
    return port;
  }

  private static int freePort() throws IOException {
    // A cluster's bus listens 10 000 above.
    for (int port = 21_000; port < 40_000; port += 7) {
      try (ServerSocket first = new ServerSocket(); ServerSocket second = new ServerSocket()) {
        first.bind(new InetSocketAddress("127.0.0.1", port));
        second.bind(new InetSocketAddress("127.0.0.1", port + 10_000));
        return port;
      } catch (IOException taken) {
        continue;
      }
    }
    throw new IOException("no free port");
  }

  private boolean answers() {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress("127.0.0.1", port), 200);
      return true;
    } catch (IOException error) {
      return false;
    }
  }

  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
      try (var files = Files.walk(folder)) {
        files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
