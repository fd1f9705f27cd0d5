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
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** Stands before a server, and cuts connections: once in a reply, or all at once. */
final class CuttingProxy implements AutoCloseable {
  private volatile int target;
  private final ServerSocket listening;
  private final Set<Socket> open = ConcurrentHashMap.newKeySet();
  private final AtomicInteger held = new AtomicInteger();
  private volatile CountDownLatch gate = new CountDownLatch(0);
  private volatile String last; // null: cut nothing
  private volatile String command; // null: cut nothing

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

  /** The next command of this name is done by the server, and its connection ends before the answer. */
  void cutAnswerTo(String name) {
    command = "\r\n" + name + "\r\n";
  }

  /** Every connection that is open ends now; the next ones are as before. */
  void cutAll() {
    for (Socket each : open) {
      open.remove(each);
      try {
        each.close();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  /** From now on this leads to another server. */
  void moveTo(int port) {
    target = port;
    cutAll();
  }

  /** New connections lead to another server; open ones stay. */
  void leadTo(int port) {
    target = port;
  }

  /** New connections are accepted, and nothing goes through them until the latch is at zero. */
  void holdNew(CountDownLatch until) {
    gate = until;
  }

  /** Return how many connections were held. */
  int held() {
    return held.get();
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
        if (gate.getCount() > 0) {
          held.incrementAndGet();
          gate.await();
        }
        Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
        open.add(client);
        open.add(server);
        AtomicBoolean cuts = new AtomicBoolean();
        start(() -> pass(client, server, false, cuts));
        start(() -> pass(server, client, true, cuts));
      }
    } catch (IOException | InterruptedException ended) {
      return;
    }
  }

  private void pass(Socket from, Socket to, boolean answers, AtomicBoolean cuts) {
    try (from; to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      byte[] buffer = new byte[1 << 14];
      for (int size = in.read(buffer); size >= 0; size = in.read(buffer)) {
        String until = last;
        String text = new String(buffer, 0, size, StandardCharsets.ISO_8859_1);
        // Only what begins as the reply wanted is cut: our own connections ask questions in between.
        if (answers && cuts.get()) {
          return;
        }
        String wanted = command;
        if (!answers && wanted != null && text.contains(wanted)) {
          command = null;
          cuts.set(true);
        }
        if (answers && until != null && text.startsWith(until)) {
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
