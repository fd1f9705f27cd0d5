package dev.antipode.lab;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** An address that leads to one server now and to another one later; connections that are open stay where they are. */
public final class MovingAddress implements AutoCloseable {
  private final ServerSocket door;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();
  private volatile int target;

  /** Leads to this port of this machine. */
  public MovingAddress(int target) {
    this.target = target;
    try {
      door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    start(this::accept);
  }

  /** Return the address's own port. */
  public int port() {
    return door.getLocalPort();
  }

  /** Leads to another port from now on. */
  public void lead(int port) {
    target = port;
  }

  private void accept() {
    while (!door.isClosed()) {
      try {
        Socket from = door.accept();
        open.add(from);
        Socket to = new Socket(InetAddress.getLoopbackAddress(), target);
        open.add(to);
        start(() -> carry(from, to));
        start(() -> carry(to, from));
      } catch (IOException refused) {
        // it was closed, or nobody answers there: who has connected hears nothing
      }
    }
  }

  private void carry(Socket from, Socket to) {
    try (from; to) {
      InputStream source = from.getInputStream();
      source.transferTo(to.getOutputStream());
    } catch (IOException broken) {
      // the other direction ends likewise
    } finally {
      open.remove(from);
      open.remove(to);
    }
  }

  private static void start(Runnable work) {
    Thread thread = new Thread(work, "antipode-moving-address");
    thread.setDaemon(true);
    thread.start();
  }

  /** Ends it, with all connections. */
  @Override
  public void close() {
    try {
      door.close();
      for (Socket each : open) {
        each.close();
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
