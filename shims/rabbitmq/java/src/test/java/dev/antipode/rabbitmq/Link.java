package dev.antipode.rabbitmq;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ThreadLocalRandom;

/** A way of its own to a broker, which can be cut, or fall silent. */
final class Link implements AutoCloseable {
  private final int target;
  private final int port;
  private final Object gate = new Object();
  private final List<Socket> sockets = new CopyOnWriteArrayList<>();
  private volatile ServerSocket listening;
  private volatile Thread accepting;
  private boolean silent;

  Link(int target) {
    this.target = target;
    listening = listenSomewhere();
    port = listening.getLocalPort();
  }

  /** Below the ports that systems give to connections: one of those could be taken while this is cut. */
  private ServerSocket listenSomewhere() {
    for (int tries = 1; ; tries++) {
      try {
        return listen(ThreadLocalRandom.current().nextInt(20_000, 30_000));
      } catch (IOException error) {
        if (tries == 100) {
          throw new UncheckedIOException(error);
        }
      }
    }
  }

  int port() {
    return port;
  }

  private ServerSocket listen(int wanted) throws IOException {
    ServerSocket socket = new ServerSocket();
    socket.setReuseAddress(true);
    socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), wanted));
    accepting = daemon(() -> {
      while (true) {
        Socket near = socket.accept();
        sockets.add(near);
        Socket far = new Socket(InetAddress.getLoopbackAddress(), target);
        sockets.add(far);
        daemon(() -> pump(near, far));
        daemon(() -> pump(far, near));
      }
    });
    return socket;
  }

  private interface Work {
    void run() throws IOException, InterruptedException;
  }

  private static Thread daemon(Work work) {
    Thread thread = new Thread(() -> {
      try {
        work.run();
      } catch (IOException | InterruptedException ended) {
        // it was cut
      }
    });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private void pump(Socket from, Socket to) throws IOException, InterruptedException {
    byte[] octets = new byte[8192];
    try (from; to) {
      for (int read = from.getInputStream().read(octets); read >= 0; read = from.getInputStream().read(octets)) {
        synchronized (gate) {
          while (silent) {
            gate.wait();
          }
        }
        to.getOutputStream().write(octets, 0, read);
      }
    }
  }

  /** Every connection ends, and none comes about. */
  void cut() {
    try {
      listening.close();
      accepting.join(10_000); // the port is free only when accept() has returned
      for (Socket socket : sockets) {
        socket.close();
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    sockets.clear();
    speak();
  }

  /** Connections stay open, and nothing comes through. */
  void silence() {
    synchronized (gate) {
      silent = true;
    }
  }

  private void speak() {
    synchronized (gate) {
      silent = false;
      gate.notifyAll();
    }
  }

  void heal() {
    speak();
    if (listening.isClosed()) {
      try {
        listening = listen(port);
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  @Override
  public void close() {
    cut();
  }
}
