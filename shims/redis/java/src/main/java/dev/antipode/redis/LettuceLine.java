package dev.antipode.redis;

import dev.antipode.LineageScope;
import io.lettuce.core.RedisChannelWriter;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.protocol.MaintenanceAwareConnectionWatchdog;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.channel.Channel;
import java.util.ArrayList;
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
  private final Set<CommandWithQuestion<K, V, ?>> held = ConcurrentHashMap.newKeySet(); // answered, but for the question
  // Under the lock of this:
  private boolean flushes = true;
  private final List<Runnable> batch = new ArrayList<>();
  private List<CommandWithQuestion<K, V, ?>> leaving = new ArrayList<>(); // of the batch
  private List<LettuceLooks<K, V>> waiting = new ArrayList<>();
  private int losses;

  LettuceLine(RedisChannelWriter writer, RedisCodec<K, V> codec) {
    this.writer = writer;
    this.endpoint = LettuceInternals.endpoint(writer);
    this.codec = codec;
  }

  /** When and where a command was sent last. Written by the threads that write connections. */
  static final class SendTime {
    private volatile Channel channel;
    private volatile long order;
    private volatile int times;

    /** How often it was sent. */
    int times() {
      return times;
    }

    /** Closes the connection on which it was sent last; Lettuce makes another one. */
    void close() {
      Channel sentOn = channel;
      if (sentOn != null) {
        sentOn.close();
      }
    }

    /** Whether this went out behind the other one on the same connection. */
    boolean isBehind(SendTime other) {
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
  void note(SendTime sent) {
    sent.channel = channel();
    sent.order = ORDER.incrementAndGet();
    sent.times = sent.times + 1; // one thread at a time sends a command
  }

  /** Whether the server may have got a command that failed so. */
  boolean mayBeSent(SendTime sent, Throwable reason) {
    // One that waits for a connection may still be taken up when it is cancelled or its time is over.
    return sent.times > 0
        || reason instanceof RedisCommandTimeoutException
        || reason instanceof CancellationException;
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
  void send(RedisCommand<K, V, ?> command, CommandWithQuestion<K, V, ?> asked) {
    if (!asked.isLate() && isBatched(() -> writer.write(command), asked)) {
      return;
    }
    asked.leaves();
    List<RedisCommand<K, V, ?>> both =
        asked.asks() ? List.of(command, question(List.of(asked))) : List.of(command);
    if (asked.isLate()) {
      askAtOnce(both);
    } else if (asked.asks()) {
      together(both, channel());
    } else {
      writer.write(command);
    }
  }

  private synchronized boolean isBatched(Runnable sending, CommandWithQuestion<K, V, ?> asked) {
    if (flushes) {
      return false;
    }
    batch.add(sending);
    if (asked != null) {
      leaving.add(asked);
    }
    return true;
  }

  private LettuceQuestion<K, V> question(List<CommandWithQuestion<K, V, ?>> of) {
    SendTime sent = new SendTime();
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

  /** What a read has to do besides, which is sent now, or with the batch; null where it is a plain one. */
  ReadCall call(Binding binding) {
    return flushes() ? ReadCall.of(binding, false) : ReadCall.queued(binding, false);
  }

  /**
   * A read goes into the batch: what it waits for by then is looked at before anything of the batch is sent.
   *
   * @return the look that it shares with the reads of the batch that are like it; null where there is no batch
   */
  synchronized LettuceLooks<K, V> inBatch(LettuceLooks<K, V> looks) {
    if (flushes) {
      return null;
    }
    for (LettuceLooks<K, V> each : waiting) {
      if (each.call().isLike(looks.call())) {
        return each;
      }
    }
    waiting.add(looks);
    return looks;
  }

  /** The batch is sent: what it has to wait for by now (BAR-51). */
  synchronized List<LettuceLooks<K, V>> takeWaiting() {
    List<LettuceLooks<K, V>> taken = waiting;
    waiting = new ArrayList<>();
    taken.forEach(each -> each.call().leaves());
    taken.removeIf(each -> !each.call().mayWait(false)); // each would take a step of the stack, for nothing
    return taken;
  }

  /** The application's batch is about to leave, in this scope; null for none. */
  synchronized void executedBy(LineageScope scope) {
    leaving.forEach(each -> each.executedBy(scope));
  }

  /** Hands the batch over, with one question behind its last command. */
  void flush() {
    List<Runnable> sending;
    List<CommandWithQuestion<K, V, ?>> left;
    synchronized (this) {
      sending = List.copyOf(batch);
      batch.clear();
      left = leaving;
      leaving = new ArrayList<>();
    }
    left.forEach(CommandWithQuestion::leaves);
    sending.forEach(Runnable::run);
    List<CommandWithQuestion<K, V, ?>> asked = left.stream().filter(CommandWithQuestion::asks).toList();
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

  void hold(CommandWithQuestion<K, V, ?> asked) {
    held.add(asked);
  }

  void release(CommandWithQuestion<K, V, ?> asked) {
    held.remove(asked);
  }

  /** The connection broke: what was answered is given to the application without the question. */
  void lost() {
    synchronized (this) {
      losses++;
    }
    List.copyOf(held).forEach(each -> each.settle(null));
  }

  /** How often the connection broke so far. */
  synchronized int losses() {
    return losses;
  }
}
