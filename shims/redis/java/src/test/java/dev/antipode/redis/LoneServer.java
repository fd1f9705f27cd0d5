package dev.antipode.redis;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** A server without replicas, outside the lab. */
final class LoneServer implements AutoCloseable {
  /** Above what systems give to connections, and labs to their servers; another one of us may have taken it. */
  private static final int FIRST_PORT = 61_000;

  private static final int TRIES = 20;

  private final String host;
  private final Path folder;
  private Process process;
  private int port;

  LoneServer(String... options) {
    this("127.0.0.1", List.of(options));
  }

  /** One at another address of this machine. */
  LoneServer(String host, List<String> options) {
    this.host = host;
    try {
      folder = Files.createTempDirectory("antipode-lone-");
      boolean listens = false;
      for (int tries = 0; tries < TRIES && !listens; tries++) {
        start(options);
        RedisServers.until(() -> answers() || !process.isAlive(), "the server listens");
        listens = process.isAlive();
      }
      if (!listens) {
        throw new IOException(Files.readString(log()));
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  int port() {
    return port;
  }

  private Path log() {
    return folder.resolve("log");
  }

  private void start(List<String> options) throws IOException {
    int[] ports = ThreadLocalRandom.current().ints(FIRST_PORT, 65_536).distinct().limit(2).toArray();
    port = ports[0];
    List<String> command = new ArrayList<>(List.of(
        "redis-server", "--bind", host, "--port", String.valueOf(port), "--cluster-port",
        String.valueOf(ports[1]), "--save", "", "--dir", folder.toString()));
    command.addAll(options);
    process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log().toFile()).start();
  }

  /** This one, and not whoever has the port. */
  private boolean answers() {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress(host, port), 200);
      socket.setSoTimeout(2000);
      socket.getOutputStream().write("INFO server\r\nQUIT\r\n".getBytes(StandardCharsets.US_ASCII));
      String said = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
      return said.contains("\nprocess_id:" + process.pid() + "\r");
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
