package dev.antipode.rabbitmq;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/** A way of its own to a broker, which can be cut, or fall silent. */
final class Link implements AutoCloseable {
  private final int target;
  private final ServerSocket listening; // also while it is cut: nobody else gets the port
  private final Object gate = new Object();
  // Under the lock of the gate:
  private final List<Socket> sockets = new ArrayList<>();
  private boolean isCut;
  private boolean silent;

  Link(int target) {
    this.target = target;
    try {
      listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    daemon(() -> {
      while (true) {
        carry(listening.accept());
      }
    });
  }

  int port() {
    return listening.getLocalPort();
  }

  private void carry(Socket near) throws IOException {
    Socket far = null;
    try {
      far = new Socket(InetAddress.getLoopbackAddress(), target);
    } catch (IOException error) {
      reset(near); // as the broker does
      return;
    }
    synchronized (gate) {
      if (isCut) {
        reset(near);
        far.close();
      } else {
        sockets.addAll(List.of(near, far));
        pumping(near, far);
        pumping(far, near);
      }
    }
  }

  private static void reset(Socket socket) throws IOException {
    socket.setSoLinger(true, 0);
    socket.close();
  }

  private interface Work {
    void run() throws IOException, InterruptedException;
  }

  private static void daemon(Work work) {
    Thread thread = new Thread(() -> {
      try {
        work.run();
      } catch (IOException | InterruptedException ended) {
        // it was cut
      }
    });
    thread.setDaemon(true);
    thread.start();
  }

  private void pumping(Socket from, Socket to) {
    daemon(() -> pump(from, to));
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

  /** Every connection ends, and those that come end at once. */
  void cut() {
    synchronized (gate) {
      isCut = true;
      try {
        for (Socket socket : sockets) {
          socket.close();
        }
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      sockets.clear();
    }
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
    synchronized (gate) {
      isCut = false;
    }
    speak();
  }

  @Override
  public void close() {
    cut();
    try {
      listening.close();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
