package dev.antipode.redis;

import dev.antipode.Ordered;
import dev.antipode.observer.Observers;
import dev.antipode.shim.Logs;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Marks one store's epochs at one server, in a thread of its own: never on the path of a request (EPOCH-19). When an epoch
 * is first met; at most once a second while there are writes; once within a second after the last one; and where a primary
 * is held and nobody writes, in a new epoch as well.
 */
final class Marker {
  private static final long SOON_MILLIS = 50; // a mark follows the first write after a pause so soon
  private static final int TIMEOUT_MILLIS = 1000;
  private static final long FIRST_RETRY_MILLIS = 250;
  private static final long LAST_RETRY_MILLIS = 5000;
  private static final long REFUSED_MILLIS = 10_000;
  private static final int EXIT_MILLIS = 150; // what the end of the process may be delayed by, at most, a server
  private static final String SHA = sha(Marks.SCRIPT);
  private static final Set<Marker> ALL = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

  static {
    Runtime.getRuntime().addShutdownHook(new Thread(Marker::atExit, "antipode-last-marks"));
  }

  private final String store;
  private final Target target;
  private final String key;
  private final Set<Object> users = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
  private final Semaphore woken = new Semaphore(0);
  private final ReentrantLock using = new ReentrantLock();
  private Thread thread; // under the lock of this
  private Session session; // under the lock `using`
  private volatile boolean ended;
  private volatile boolean dirty;
  private volatile Facts facts = Facts.UNKNOWN;
  private volatile Ordered position;
  private volatile String epoch = ""; // of the last position that woke the thread

  private Marker(String store, Target target, String key) {
    this.store = store;
    this.target = target;
    this.key = key;
  }

  static Marker of(String store, Target target, String key) {
    Marker made = new Marker(store, target, key);
    ALL.add(made);
    return made;
  }

  /** What was found out about the server. */
  Facts facts() {
    return facts;
  }

  void facts(Facts found) {
    facts = found;
  }

  // Called in a request

  /** A write of this process got this position. Costs next to nothing. */
  void wrote(Ordered written) {
    position = written;
    if (!dirty || !epoch.equals(written.epoch())) {
      epoch = written.epoch();
      dirty = true;
      start();
      woken.release();
    }
  }

  /** Marks as long as this client is in use. */
  void use(Object client) {
    users.add(client);
    start();
  }

  /** The client was closed. */
  void unuse(Object client) {
    users.remove(client);
    woken.release();
  }

  private synchronized void start() {
    if (thread == null && !ended) {
      thread = new Thread(null, this::run, "antipode-marks-" + store, 0, false);
      thread.setDaemon(true);
      try {
        thread.start();
      } catch (OutOfMemoryError error) { // never the application's, whose write was executed (SHIM-2, BAR-61)
        thread = null;
        dirty = false; // the next write tries again
        Logs.warn(
            "AP209",
            "marker " + store,
            "no thread could be started to mark the epochs of " + store + " (" + error.getMessage() + "): tried again");
      }
    }
  }

  // The thread

  private void run() {
    long pause = 0;
    long retry = FIRST_RETRY_MILLIS;
    while (isWanted()) {
      // Whoever writes first after a pause wakes the thread; marks keep their distance by the script's clock.
      pause(pause);
      using.lock();
      try {
        if (ended) {
          break;
        }
        pause = stepOrRefused();
        retry = FIRST_RETRY_MILLIS;
      } catch (IOException | RuntimeException | Error error) { // out of reach, or our own fault: the mark stays due
        drop();
        pause = retry;
        retry = Math.min(retry * 2, LAST_RETRY_MILLIS);
      } finally {
        using.unlock();
      }
    }
    using.lock();
    try {
      drop();
    } finally {
      using.unlock();
    }
  }

  private void pause(long millis) {
    try {
      boolean isWoken = woken.tryAcquire(millis, TimeUnit.MILLISECONDS);
      woken.drainPermits();
      if (isWoken && !ended) {
        Thread.sleep(Math.min(SOON_MILLIS, Marks.periodMillis));
      }
    } catch (InterruptedException interrupted) {
      ended = true;
    }
  }

  /** Also lets the thread go, so that another one starts where it is wanted again. */
  private synchronized boolean isWanted() {
    boolean isWanted = !ended && (!users.isEmpty() || dirty);
    if (!isWanted) {
      thread = null;
    }
    return isWanted;
  }

  private long stepOrRefused() throws IOException {
    try {
      return step();
    } catch (ServerError error) {
      return refused(error);
    }
  }

  /** Marks if a mark is due; returns how long the next look may take, in ms. */
  private long step() throws IOException, ServerError {
    if (session == null) {
      session = new Session(target, TIMEOUT_MILLIS);
      if (!facts.reached()) {
        facts = Facts.probe(session, store, key);
      }
    }
    dirty = false; // before the look at the position: a write in between makes it dirty again
    Ordered written = position;
    boolean isMarked = false;
    try {
      List<?> answer = mark(written, Marks.periodMillis);
      isMarked = true;
      String word = Resp.text(answer.get(0));
      if (word.equals("wait")) {
        dirty = true;
        return Math.max((Long) answer.get(1), 10);
      }
      if (!word.equals("replica")) {
        Observers.events().onMarksMissing(store, null);
      }
      // Where nobody writes: has it become the primary of a new epoch?
      return Marks.periodMillis;
    } finally {
      if (!isMarked) {
        dirty = written != null;
      }
    }
  }

  private List<?> mark(Ordered written, int periodMillis) throws IOException, ServerError {
    String covered = written == null ? "" : written.epoch();
    String counter = written == null ? "0" : written.counterText();
    Object[] words = {
      "EVALSHA", SHA, "1", key, covered, counter, periodMillis, Marks.MOST, Replication.EPOCH_DIGITS
    };
    Object reply = session.ask(Resp.pack(words)).get(0);
    if (reply instanceof ServerError error && error.code().equals("NOSCRIPT")) {
      words[0] = "EVAL";
      words[1] = Marks.SCRIPT;
      reply = session.ask(Resp.pack(words)).get(0);
    }
    if (reply instanceof ServerError error) {
      throw error;
    }
    Observers.events().onServerAsked(store, "mark");
    return (List<?>) reply;
  }

  /** The server answered with an error: no right, a full memory, a key of another type. */
  private long refused(ServerError error) {
    if (List.of("LOADING", "MASTERDOWN", "BUSY").contains(error.code())) {
      return FIRST_RETRY_MILLIS;
    }
    Observers.events().onMarksMissing(store, target.address() + ": " + error.getMessage());
    Logs.warn(
        "AP508",
        "marks " + store + " " + target.address(),
        "the epochs of " + store + " cannot be marked at " + target.address() + ": " + error.getMessage()
            + ". Positions are given, and a failover or restart makes older ones unproven. " + Facts.grant(key));
    return REFUSED_MILLIS;
  }

  private void drop() {
    if (session != null) {
      session.close();
      session = null;
    }
  }

  // The end

  /** Ends the thread and its connection (a store that was forgotten). */
  void stop() {
    ended = true;
    woken.release();
    Thread running;
    synchronized (this) {
      running = thread;
    }
    if (running != null && running != Thread.currentThread()) {
      try {
        running.join(2L * TIMEOUT_MILLIS);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static void atExit() {
    List<Marker> left;
    synchronized (ALL) {
      left = List.copyOf(ALL);
    }
    left.forEach(Marker::lastMark);
  }

  /** The process ends: one mark, if there is something to mark, within a moment. */
  void lastMark() {
    if (ended || !dirty || position == null) {
      return;
    }
    ended = true;
    try {
      if (!using.tryLock(EXIT_MILLIS, TimeUnit.MILLISECONDS)) {
        return;
      }
      try {
        if (session == null) {
          session = new Session(target, EXIT_MILLIS);
        }
        session.timeout(EXIT_MILLIS);
        mark(position, 0); // nobody is left to do it in a second
        drop();
      } finally {
        using.unlock();
      }
    } catch (IOException | ServerError | InterruptedException | RuntimeException error) {
      return; // nobody is left to be told
    }
  }

  static String sha(String script) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-1").digest(script.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest);
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalStateException(error); // every platform has it
    }
  }
}
