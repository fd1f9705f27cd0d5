package dev.antipode.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Stands before a server; cuts a connection once, after so much of the next reply was let through. */
final class CuttingProxy implements AutoCloseable {
  private final int target;
  private final ServerSocket listening;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();
  private volatile String last; // null: cut nothing

  CuttingProxy(int target) {
    this.target = target;
    try {
      listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    start(this::accept);
  }

  int port() {
    return listening.getLocalPort();
  }

  /** The next answer of the server, whatever connection it is for, is let through up to here. */
  void cutAfter(String text) {
    last = text;
  }

  private static void start(Runnable work) {
    Thread thread = new Thread(work, "cutting-proxy");
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() {
    try {
      while (true) {
        Socket client = listening.accept();
        Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
        open.add(client);
        open.add(server);
        start(() -> pass(client, server, false));
        start(() -> pass(server, client, true));
      }
    } catch (IOException ended) {
      return;
    }
  }

  private void pass(Socket from, Socket to, boolean answers) {
    try (from; to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      byte[] buffer = new byte[1 << 14];
      for (int size = in.read(buffer); size >= 0; size = in.read(buffer)) {
        String until = last;
        String text = new String(buffer, 0, size, StandardCharsets.ISO_8859_1);
        // Only what begins as the reply wanted is cut: our own connections ask questions in between.
        if (answers && until != null && (until.isEmpty() ? isOneNumberOrError(text) : text.startsWith(until))) {
          last = null;
          out.write(buffer, 0, until.length());
          out.flush();
          return;
        }
        out.write(buffer, 0, size);
        out.flush();
      }
    } catch (IOException ended) {
      return;
    }
  }

  private static boolean isOneNumberOrError(String text) {
    return text.startsWith(":") || text.startsWith("-") || text.startsWith("+OK");
  }

  @Override
  public void close() {
    try {
      listening.close();
      for (Socket each : open) {
        each.close();
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
