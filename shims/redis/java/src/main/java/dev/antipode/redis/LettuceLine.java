package dev.antipode.redis;

import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.MaintenanceAwareConnectionWatchdog;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.channel.Channel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * How commands leave by one connection of Lettuce, which many threads share, which is made anew after it broke, and which
 * then repeats what was not answered.
 *
 * <p>The answer to a question counts for a write only where the question was sent behind it on the same connection: after
 * a failover the next connection's server may be ahead of a write that it does not have. Commands of others in between do
 * no harm, they make the position greater.
 */
final class LettuceLine<K, V> {
  private static final AtomicLong ORDER = new AtomicLong();

  private final RedisChannelWriter writer;
  private final RedisChannelWriter endpoint;
  private final RedisCodec<K, V> codec;
  private final Set<LettuceAsked<K, V, ?>> held = ConcurrentHashMap.newKeySet(); // answered, but for the question
  // Under the lock of this:
  private boolean flushes = true;
  private boolean isShut;
  private int shuts;
  private final Deque<Runnable> behind = new ArrayDeque<>(); // what came while it was shut
  private final List<Runnable> batch = new ArrayList<>();
  private List<LettuceAsked<K, V, ?>> asking = new ArrayList<>();
  private ReadCall waiting;

  LettuceLine(RedisChannelWriter writer, RedisCodec<K, V> codec) {
    this.writer = writer;
    this.endpoint = LettuceInternals.endpoint(writer);
    this.codec = codec;
  }

  /** When and where a command was sent last. Written by the threads that write connections. */
  static final class Sent {
    private volatile Channel channel;
    private volatile long order;
    private volatile int times;

    /** How often it was sent. */
    int times() {
      return times;
    }

    /** Whether this went out behind the other one on the same connection. */
    boolean isBehind(Sent other) {
      return channel != null && channel == other.channel && order > other.order;
    }
  }

  RedisCodec<K, V> codec() {
    return codec;
  }

  /** The connection as it is now; null while there is none. */
  Channel channel() {
    return LettuceInternals.channel(endpoint);
  }

  /** A command goes out. */
  void note(Sent sent) {
    sent.channel = channel();
    sent.order = ORDER.incrementAndGet();
    sent.times = sent.times + 1; // one thread at a time sends a command
  }

  /** Whether the server may have got a command that failed so. */
  boolean mayBeSent(Sent sent, Throwable reason) {
    // One that waits for a connection may still be taken up when it is cancelled or its time is over.
    return sent.times > 0
        || reason instanceof RedisCommandTimeoutException
        || reason instanceof CancellationException;
  }

  // Order

  /** Sends in the order of the calls: at once, or when what was shut opens. */
  void inOrder(Runnable send) {
    synchronized (this) {
      if (isShut) {
        behind.add(send);
        return;
      }
    }
    send.run();
  }

  /** Holds back what comes, until it opens. */
  synchronized void shut() {
    isShut = true;
    shuts++;
  }

  /** Sends what came meanwhile; some of that may shut it again. */
  void open() {
    int mine;
    synchronized (this) {
      mine = shuts;
    }
    while (true) {
      Runnable next;
      synchronized (this) {
        if (shuts != mine) {
          return; // whoever shut it opens it
        }
        next = behind.poll();
        if (next == null) {
          isShut = false;
          return;
        }
      }
      next.run();
    }
  }

  // Sending

  /** Sends a command as it is, in a batch where the application flushes by itself. */
  void send(RedisCommand<K, V, ?> command) {
    if (!isBatched(() -> writer.write(command), null)) {
      writer.write(command);
    }
  }

  /** Sends by another way, in the same order. */
  void sendBy(Runnable sending) {
    if (!isBatched(sending, null)) {
      sending.run();
    }
  }

  /** Sends a command with its question behind it. */
  void send(RedisCommand<K, V, ?> command, LettuceAsked<K, V, ?> asked) {
    if (!asked.asks()) {
      send(command);
    } else if (!isBatched(() -> writer.write(command), asked)) {
      together(List.of(command, question(List.of(asked))), channel());
    }
  }

  private synchronized boolean isBatched(Runnable sending, LettuceAsked<K, V, ?> asked) {
    if (flushes) {
      return false;
    }
    batch.add(sending);
    if (asked != null) {
      asking.add(asked);
    }
    return true;
  }

  private LettuceQuestion<K, V> question(List<LettuceAsked<K, V, ?>> of) {
    Sent sent = new Sent();
    return new LettuceQuestion<>(codec, this, sent, Looks.QUESTION, reply -> {
      boolean isReply = reply instanceof byte[] || reply instanceof ServerError;
      of.forEach(each -> each.settle(isReply && sent.isBehind(each.sent()) ? reply : null));
    });
  }

  /** Sends commands so that nothing comes between them, unless the connection breaks just now. */
  void together(List<RedisCommand<K, V, ?>> commands, Channel channel) {
    if (channel == null || channel.eventLoop().inEventLoop()) {
      writer.write(commands);
      return;
    }
    try {
      channel.eventLoop().execute(() -> writer.write(commands));
    } catch (RejectedExecutionException ended) { // the client was shut down: the writer says so
      writer.write(commands);
    }
  }

  /** Sends commands that only make sense as one step; {@code otherwise} where that cannot be granted now. */
  void asOne(List<RedisCommand<K, V, ?>> commands, Runnable otherwise) {
    Channel channel = channel();
    if (channel == null || !flushes()) {
      otherwise.run();
      return;
    }
    Runnable sending = () -> {
      // On the connection's own thread: while it is active here, nobody else writes, and it does not end.
      boolean isLeaving = channel.hasAttr(MaintenanceAwareConnectionWatchdog.REBIND_ATTRIBUTE);
      if (channel.isActive() && channel == channel() && flushes() && !isLeaving) {
        writer.write(commands);
      } else {
        otherwise.run();
      }
    };
    if (channel.eventLoop().inEventLoop()) {
      sending.run();
      return;
    }
    try {
      channel.eventLoop().execute(sending);
    } catch (RejectedExecutionException ended) {
      otherwise.run();
    }
  }

  // Batches of an application that flushes by itself

  synchronized boolean flushes() {
    return flushes;
  }

  synchronized void flushes(boolean byItself) {
    flushes = byItself;
  }

  /** A read of this batch has to wait before anything of the batch is sent; the first one stands for all. */
  synchronized boolean waitsInBatch(ReadCall call) {
    if (flushes) {
      return false;
    }
    if (waiting == null) {
      waiting = call;
    }
    return true;
  }

  /** What the batch has to wait for; null for nothing. */
  synchronized ReadCall takeWaiting() {
    ReadCall call = waiting;
    waiting = null;
    return call;
  }

  /** Hands the batch over, with one question behind its last command. */
  void flush() {
    List<Runnable> sending;
    List<LettuceAsked<K, V, ?>> asked;
    synchronized (this) {
      sending = List.copyOf(batch);
      batch.clear();
      asked = asking;
      asking = new ArrayList<>();
    }
    sending.forEach(Runnable::run);
    if (!asked.isEmpty()) {
      writer.write(question(asked));
    }
    writer.flushCommands();
  }

  /** Sends questions at once, though the application may flush by itself. */
  void askAtOnce(List<RedisCommand<K, V, ?>> commands) {
    if (flushes()) {
      together(commands, channel());
    } else {
      writer.write(commands);
      writer.flushCommands();
    }
  }

  // Answers that the application has to wait for

  void hold(LettuceAsked<K, V, ?> asked) {
    held.add(asked);
  }

  void release(LettuceAsked<K, V, ?> asked) {
    held.remove(asked);
  }

  /** The connection broke: what was answered is given to the application without the question. */
  void lost() {
    List.copyOf(held).forEach(each -> each.settle(null));
  }
}
