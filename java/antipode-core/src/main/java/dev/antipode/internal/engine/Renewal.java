package dev.antipode.internal.engine;

import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Server;
import java.util.function.Consumer;

/**
 * The connection by which a server is asked, and the next one, which stands before this one ends (BAR-55, BAR-69). Used
 * by the thread that asks alone.
 *
 * <p>To open a connection may take a second, and nobody is answered meanwhile. So it is opened on a thread of its own,
 * while the one that is there goes on answering. That lets no barrier pass that could not pass before:
 *
 * <ol>
 *   <li>A connection may stay at a server to which its address leads no more. BAR-55 allows that for its time, which begins
 *       with its opening: the address was looked up then. It never answers behind its time, whether the next one stands or
 *       not; where that is late, whoever waits stands still. So it is of the next one, which may have stood there for long
 *       when somebody asks again.
 *   <li>When the next one stands, all that was proved is dropped before it is asked, as with any new connection (BAR-33):
 *       it may lead to another server. One thread does both, between two questions: no answer of one counts as the other's.
 *   <li>That it cannot be opened is no silence of the server (BAR-26), which answers by the other one. Behind that one's
 *       time the thread that asks opens a connection itself, and finds out whose fault it is (BAR-61).
 * </ol>
 */
final class Renewal {
  /** A connection lives for so many at least: several servers are to stand together (BAR-55). */
  private static final int QUESTIONS = 10;

  /** The next one is begun in the last fifth of a connection's time, or sooner where it lately took longer. */
  private static final int LEAD = 5;

  private final Server server;
  private final Consumer<AutoCloseable> closing; // closes the connection, and gives its place to the next one, or to none
  private volatile long madeAt = Ticks.LONG_AGO; // when the connection that may be open began to be opened
  private boolean isNew;
  private long questionTime; // of late, with the connection's
  private long openingTime; // the last one's
  private volatile ConnectionAttempt next; // written by the thread alone

  Renewal(Server server, Consumer<AutoCloseable> closing) {
    this.server = server;
    this.closing = closing;
  }

  /** Have the next connection take the place of this one, where it stands or it is time; one lives for {@code reconnect}. */
  void beginQuestion(long now, long reconnect) {
    if (!server.store().shim().reconnects()) {
      return;
    }
    if (madeAt == Ticks.LONG_AGO) {
      begin(now);
      return;
    }
    long life = Math.max(reconnect, QUESTIONS * questionTime);
    long left = madeAt + life - now;
    if (next == null && 0 < left && left <= Math.min(life / 2, Math.max(life / LEAD, 2 * openingTime))) {
      next = open();
      left = madeAt + life - Ticks.now(); // a thread may begin late
    }
    if (next != null && left <= 0) {
      next.await(Math.max(server.askTimeout().toNanos(), 2 * openingTime)); // it is further than a new one
    }
    ConnectionAttempt opened = next;
    AutoCloseable session = opened == null ? null : opened.take();
    if (session != null) {
      closing.accept(session);
      madeAt = opened.beganAt();
      openingTime = opened.time();
      left = madeAt + life - Ticks.now(); // it may have stood there for long
    }
    if (left <= 0) {
      closing.accept(null);
      begin(Ticks.now());
    }
  }

  private void begin(long now) {
    madeAt = now;
    isNew = true;
  }

  /** Note that a question was answered, and how long that took, the opening of its connection included. */
  void endQuestion(long nanos) {
    questionTime = Math.max(nanos, questionTime / 2);
    if (isNew) {
      isNew = false;
      openingTime = nanos;
    }
  }

  /** Note that the connection is closed: whoever is asked next, is asked by one that is opened then. */
  void end() {
    madeAt = Ticks.LONG_AGO;
    isNew = false;
    if (next != null) {
      next.giveUp();
      next = null;
    }
  }

  private ConnectionAttempt open() {
    if (!server.store().shim().renews()) {
      return null;
    }
    ConnectionAttempt opening = new ConnectionAttempt(server);
    try {
      EngineThreads.start(opening, "antipode-next-" + server.store().name() + "-" + server.address());
    } catch (OutOfMemoryError error) { // this one answers to its end, and then none is opened beside it
      opening.end(null);
    }
    return opening;
  }

  /** Return the one that is opened beside it, or was; null for none (tests). */
  ConnectionAttempt next() {
    return next;
  }

  /** Let the connection have begun then (tests). */
  void madeAt(long then) {
    madeAt = then;
  }
}
