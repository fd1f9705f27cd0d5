package dev.antipode.redis;

import java.io.IOException;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Our own connection to one server: questions, and pushes by client-side tracking, on one socket, so that they keep their
 * order. One thread asks; another one reads.
 */
final class Session implements AutoCloseable {
  /** The question, packed. */
  static final byte[] QUESTION = Resp.pack("INFO", "replication");

  private static final byte[] MULTI = Resp.pack("MULTI");
  private static final byte[] EXEC = Resp.pack("EXEC");
  private static final int AGAIN = 3; // where the history changed between two questions
  private static final AtomicLong NUMBERS = new AtomicLong();
  private static final Object ENDED = new Object();
  private static final Object NULL = new Object();

  /** Hears of pushes; called by the thread that reads. */
  interface Listener {
    /** Something was changed at the server. */
    void changed();

    /** All its data were replaced (a full resync, FLUSHALL). */
    void reset();

    /** The connection broke off. */
    void broken(Exception error);
  }

  private final Socket socket;
  private final BlockingQueue<Object> replies = new LinkedBlockingQueue<>();
  private volatile Listener listener;
  private volatile Throwable ended;
  private volatile boolean closed;
  private long timeoutNanos;
  private boolean resp3;
  private boolean cluster;
  private String version = "";
  private String history = "";
  private final String runId;

  /**
   * Connects.
   *
   * @throws IOException where the server cannot be reached
   * @throws ServerError where it refuses
   */
  Session(Target target, int timeoutMillis) throws IOException, ServerError {
    timeout(timeoutMillis);
    socket = target.connect(timeoutMillis);
    boolean isReady = false;
    try {
      socket.setSoTimeout(0); // the reader waits for pushes; who asks has a deadline of its own
      Resp reader = new Resp(socket.getInputStream());
      Thread reading = new Thread(null, () -> read(reader), "antipode-redis-" + target.address(), 0, false);
      reading.setDaemon(true);
      start(reading);
      greet(target, timeoutMillis);
      runId = askRunId();
      isReady = true;
    } finally {
      if (!isReady) {
        close();
      }
    }
  }

  /** Starts its thread; where none is to be had, the words say that it is no silence of the server (BAR-61). */
  private static void start(Thread reading) throws IOException {
    try {
      reading.start();
    } catch (OutOfMemoryError error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  void timeout(int millis) {
    timeoutNanos = TimeUnit.MILLISECONDS.toNanos(millis);
  }

  /** Names the server's life. */
  String runId() {
    return runId;
  }

  /** Whether it is part of a Redis Cluster. */
  boolean cluster() {
    return cluster;
  }

  /** The server's version. */
  String version() {
    return version;
  }

  private void greet(Target target, int timeoutMillis) throws IOException, ServerError {
    Credentials credentials = target.credentials(timeoutMillis);
    String password = credentials == null ? null : credentials.password();
    String user = credentials == null || credentials.user() == null ? "default" : credentials.user();
    Object hello = ask(password == null
        ? Resp.pack("HELLO", "3")
        : Resp.pack("HELLO", "3", "AUTH", user, password)).get(0);
    if (hello instanceof Map<?, ?> facts) {
      resp3 = true;
      cluster = Resp.text(facts.get("mode")).equals("cluster");
      version = Resp.text(facts.get("version"));
    } else if (hello instanceof ServerError error && isUnknownHello(error)) {
      if (password != null && credentials.user() != null) {
        command("AUTH", user, password);
      } else if (password != null) { // a server before 6.0, or a proxy
        command("AUTH", password);
      }
    } else {
      throw hello instanceof ServerError error ? error : new ServerError("HELLO answered " + hello);
    }
    if (target.database() != 0) {
      command("SELECT", target.database());
    }
  }

  private static boolean isUnknownHello(ServerError error) {
    String said = error.getMessage().toUpperCase(java.util.Locale.ROOT);
    return said.startsWith("NOPROTO") || (said.contains("HELLO") && !said.startsWith("NOAUTH"));
  }

  private String askRunId() throws IOException {
    Object reply = ask(Resp.pack("INFO", "server")).get(0);
    if (!(reply instanceof byte[] octets)) {
      return "connection:" + NUMBERS.incrementAndGet(); // unknown: no other connection is the same server
    }
    Map<String, String> words = Replication.words(Replication.text(octets));
    if (version.isEmpty()) {
      version = words.getOrDefault("redis_version", "");
    }
    return words.getOrDefault("run_id", "");
  }

  // The thread that reads

  private void read(Resp reader) {
    try {
      while (true) {
        Object message = reader.read();
        if (message instanceof Resp.Push push) {
          note(push.words());
        } else {
          replies.add(message == null ? NULL : message);
        }
      }
    } catch (Throwable error) { // also our own fault: whoever waits for a reply or a push has to know that nobody reads (BAR-61)
      end(error);
    }
  }

  private void end(Throwable error) {
    ended = error;
    try {
      replies.add(ENDED);
    } finally { // even that takes memory
      Listener told = listener;
      if (told != null && !closed) {
        told.broken(error instanceof IOException silence ? silence : new IOException(error));
      }
    }
  }

  private void note(List<Object> words) {
    if (words.isEmpty() || !Resp.text(words.get(0)).equals("invalidate")) {
      return;
    }
    Listener told = listener;
    if (told == null) {
      return;
    }
    if (words.size() > 1 && words.get(1) == null) {
      told.reset();
    }
    told.changed();
  }

  // Questions

  /** Sends commands in one packet and returns their replies; error replies are values. */
  List<Object> ask(byte[]... commands) throws IOException {
    long deadline = System.nanoTime() + timeoutNanos;
    int size = 0;
    for (byte[] command : commands) {
      size += command.length;
    }
    byte[] packet = new byte[size];
    int at = 0;
    for (byte[] command : commands) {
      System.arraycopy(command, 0, packet, at, command.length);
      at += command.length;
    }
    if (ended != null) {
      throw new IOException(ended);
    }
    socket.getOutputStream().write(packet);
    List<Object> answers = new ArrayList<>(commands.length);
    while (answers.size() < commands.length) {
      answers.add(next(deadline));
    }
    return answers;
  }

  private Object next(long deadline) throws IOException {
    Object message;
    try {
      message = replies.poll(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", interrupted);
    }
    if (message == ENDED || (message == null && ended != null)) {
      throw new IOException(ended.getMessage(), ended);
    }
    if (message == null) {
      throw new IOException("no answer within %.1f s".formatted(timeoutNanos / 1e9));
    }
    return message == NULL ? null : message;
  }

  /**
   * One command's reply.
   *
   * @throws ServerError for an error
   */
  Object command(Object... words) throws IOException, ServerError {
    Object reply = ask(Resp.pack(words)).get(0);
    if (reply instanceof ServerError error) {
      throw error;
    }
    return reply;
  }

  /**
   * Where the server is, and what its marks say of these epochs, in one atomic step.
   *
   * <p>Two commands alone would not do: a resync can replace the data between them, under a live connection.
   *
   * @throws ServerError where the server refuses to say where it is
   */
  ServerState look(List<String> epochs, String key) throws IOException, ServerError {
    ServerState seen = null;
    for (int round = 0; round < AGAIN; round++) {
      seen = lookOnce(epochs, key);
      String now = seen.replication().epoch();
      boolean isSteady = now.equals(history) || epochs.stream().allMatch(now::equals);
      history = now;
      if (isSteady) { // what was pushed meanwhile the engine knows, and asks for in its time (BAR-66)
        break;
      }
    }
    return seen;
  }

  private ServerState lookOnce(List<String> epochs, String key) throws IOException, ServerError {
    List<String> foreign = epochs.stream().filter(epoch -> !epoch.equals(history)).toList();
    if (foreign.isEmpty()) {
      return ServerState.of(parse(ask(QUESTION).get(0)).withoutBefore(), Map.of());
    }
    List<String> fields = new ArrayList<>(List.of(history.isEmpty() ? "-" : history));
    fields.addAll(foreign);
    List<Object> words = new ArrayList<>(List.of("HMGET", key));
    words.addAll(fields);
    List<Object> answers = ask(MULTI, QUESTION, Resp.pack(words.toArray()), EXEC);
    if (answers.get(1) instanceof ServerError error) {
      throw error;
    }
    Object refused = answers.get(2);
    if (answers.get(3) instanceof List<?> whole) {
      Replication replication = parse(whole.get(0));
      if (whole.get(1) instanceof List<?> values) {
        return ServerState.of(replication, marks(fields, values));
      }
      refused = whole.get(1);
    }
    if (!(refused instanceof ServerError error)) {
      throw answers.get(3) instanceof ServerError aborted ? aborted : new ServerError("EXEC answered nothing");
    }
    if (!isUnreadable(error.code())) {
      throw error; // LOADING: its data are being replaced, and what it says of its history is of before
    }
    return withoutMarks(error);
  }

  private ServerState withoutMarks(ServerError refused) throws IOException, ServerError {
    Object whole = ask(MULTI, QUESTION, Resp.pack("INFO", "persistence"), EXEC).get(3);
    if (!(whole instanceof List<?> values)) {
      throw whole instanceof ServerError error ? error : new ServerError("EXEC answered nothing");
    }
    if (values.get(1) instanceof byte[] octets && Replication.text(octets).contains("\nloading:1")) {
      throw new ServerError("LOADING its data are being replaced");
    }
    return new ServerState(parse(values.get(0)), Map.of(), "its marks cannot be read (" + refused.getMessage() + ")");
  }

  /** Where the server is; throws where it refuses to say. */
  static Replication parse(Object reply) throws ServerError, IOException {
    if (reply instanceof ServerError error) {
      throw error;
    }
    try {
      return Replication.parse(reply);
    } catch (IllegalArgumentException error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  /** Errors that say of the marks that they cannot be read, and nothing against the rest of the answer. */
  static boolean isUnreadable(String code) {
    return code.equals("NOPERM") || code.equals("WRONGTYPE");
  }

  /** The marks in a reply to HMGET. */
  static Map<String, Long> marks(List<String> fields, List<?> values) {
    Map<String, Long> marks = new java.util.HashMap<>();
    for (int place = 0; place < fields.size(); place++) {
      Long position = Marks.positionOf(values.get(place));
      if (position != null) {
        marks.put(fields.get(place), position);
      }
    }
    return marks;
  }

  // Pushes

  /**
   * Has every change at the server pushed to this connection.
   *
   * @throws ServerError where the server refuses
   */
  void track(Listener told) throws IOException, ServerError {
    if (!resp3) {
      throw new ServerError("NOPROTO the server does not speak RESP3");
    }
    listener = told;
    try {
      command("CLIENT", "TRACKING", "ON", "BCAST");
    } catch (ServerError error) {
      listener = null;
      throw error;
    }
  }

  /** Ends the connection, and the thread that reads it; never throws. */
  @Override
  public void close() {
    closed = true;
    listener = null;
    try {
      socket.close();
    } catch (IOException error) {
      // it is gone all the same
    }
  }
}
