package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.PossibleAuthenticationFailureException;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * One connection that reads a tap from where its memory ends, at first from the last messages that it remembers.
 *
 * <p>It first asks for the stream's last chunk, because a start behind the stream's end would skip what comes until then:
 * the stream may have been declared anew meanwhile. Then it reads from where the memory says. Messages that are read twice
 * are the same as once.
 */
final class TapReader implements AutoCloseable {
  private static final int PREFETCH = 400;
  private static final long SILENT = TimeUnit.MILLISECONDS.toNanos(500); // then the broker is asked for a sign of life
  private static final int FAREWELL_MILLIS = 1000;
  private static final int NOT_ALLOWED = 530;

  private final Tap tap;
  private final TapMemory memory;
  private final Runnable onArrival;
  private final ConnectionFactory factory;
  private final ExecutorService own; // opens channels: what a message's callback may not do
  private final CountDownLatch ready = new CountDownLatch(1);

  private volatile Connection connection;
  private volatile Channel control;
  private volatile Channel reading;
  private volatile long heardAt = System.nanoTime();
  private volatile Exception error;
  private volatile boolean closing;

  /** {@code onArrival} is called when a message has arrived that somebody waits for, and when the reader has failed. */
  TapReader(Tap tap, TapMemory memory, Runnable onArrival, Duration timeout) {
    this.tap = tap;
    this.memory = memory;
    this.onArrival = onArrival;
    ThreadFactory threads = work -> {
      Thread thread = new Thread(null, work, "antipode-tap-" + tap.queue(), 0, false);
      thread.setDaemon(true);
      return thread;
    };
    this.own = Executors.newSingleThreadExecutor(threads);
    this.factory = tap.factory();
    int millis = (int) Math.max(1, timeout.toMillis());
    factory.setAutomaticRecoveryEnabled(false);
    factory.setTopologyRecoveryEnabled(false);
    factory.setConnectionTimeout(millis);
    factory.setHandshakeTimeout(millis);
    factory.setChannelRpcTimeout(millis);
    factory.setShutdownTimeout(millis);
    factory.setThreadFactory(threads);
  }

  // For the engine's thread

  /**
   * Connects and begins to read.
   *
   * @throws TapRefusedException where the broker refuses
   * @throws IOException where it is out of reach
   */
  void start(Duration timeout) throws IOException, TapRefusedException {
    run(this::connect);
    try {
      if (!within(ready, timeout)) {
        throw new IOException(silence(timeout));
      }
      raise();
    } catch (IOException | TapRefusedException error) {
      close(); // nobody else has it
      throw error;
    }
  }

  /** Returns if the broker is there; throws what {@link #start} throws. */
  void check(Duration timeout) throws IOException, TapRefusedException {
    if (error == null && System.nanoTime() - heardAt > SILENT) {
      CountDownLatch answered = new CountDownLatch(1);
      Thread asking = new Thread(null, () -> ask(answered), "antipode-tap-sign-" + tap.queue(), 0, false);
      asking.setDaemon(true);
      asking.start();
      if (!within(answered, timeout) && error == null) {
        throw new IOException(silence(timeout));
      }
    }
    raise();
  }

  private String silence(Duration timeout) {
    return "%s did not answer within %.1f s".formatted(tap.broker(), timeout.toNanos() / 1e9);
  }

  private static boolean within(CountDownLatch latch, Duration timeout) throws IOException {
    try {
      return latch.await(timeout.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", interrupted);
    }
  }

  private void raise() throws IOException, TapRefusedException {
    Exception failed = error;
    if (failed instanceof TapRefusedException) {
      throw new TapRefusedException(failed.getMessage());
    }
    if (failed != null) {
      throw new IOException(failed.getMessage(), failed);
    }
  }

  /** Ends it, without waiting for the broker's answer; never throws. */
  @Override
  public void close() {
    closing = true;
    run(this::end);
    own.shutdown();
  }

  // In its own threads

  private interface Step {
    void run() throws Exception;
  }

  private void run(Step step) {
    try {
      own.execute(() -> {
        try {
          step.run();
        } catch (Throwable failed) { // a lack of memory or threads, too: its silence would be the broker's (BAR-61)
          fail(failed);
        }
      });
    } catch (RejectedExecutionException ended) {
      // it was closed
    } catch (OutOfMemoryError lacking) {
      fail(lacking);
    }
  }

  private void end() {
    Connection open = connection;
    if (open != null) {
      open.abort(FAREWELL_MILLIS);
    }
  }

  private void fail(Throwable cause) {
    synchronized (this) {
      if (error != null) {
        return;
      }
      error = asError(cause);
    }
    ready.countDown();
    if (!closing) {
      onArrival.run(); // whoever waits asks again, and so learns of it
    }
    run(this::end);
  }

  private void ask(CountDownLatch answered) {
    try {
      control.queueDeclarePassive(tap.queue());
      heardAt = System.nanoTime();
    } catch (IOException | RuntimeException | Error failed) {
      fail(failed);
    }
    answered.countDown();
  }

  private void connect() throws IOException, TimeoutException {
    if (closing) {
      return;
    }
    connection = factory.newConnection("antipode-tap-" + tap.queue());
    connection.addShutdownListener(this::fail);
    control = connection.createChannel();
    Channel probing = newChannel(1);
    consume(probing, "last", delivery -> probed(probing, delivery));
    heardAt = System.nanoTime();
    ready.countDown();
  }

  private Channel newChannel(int prefetch) throws IOException {
    Channel channel = connection.createChannel();
    reading = channel;
    channel.addShutdownListener(signal -> {
      if (reading == channel) {
        fail(signal);
      }
    });
    channel.basicQos(prefetch);
    return channel;
  }

  private interface DeliveryHandler {
    void take(Delivery delivery) throws IOException;
  }

  private void consume(Channel channel, Object offset, DeliveryHandler taken) throws IOException {
    channel.basicConsume(
        tap.queue(),
        false,
        Map.of(ChannelConsumer.STREAM_OFFSET, offset),
        (consumer, delivery) -> {
          if (channel == reading) {
            taken.take(delivery);
          }
        },
        consumer -> fail(new IOException(tap.queue() + " went away")));
  }

  /** The stream's last chunk begins here; an empty stream has none, and its first message comes here, too. */
  private void probed(Channel probing, Delivery delivery) {
    TapMemory.Place chunk = placeOf(delivery);
    if (chunk == null) {
      fail(new TapRefusedException(
          tap.queue() + " gives messages without " + ChannelConsumer.STREAM_OFFSET + ": it is no stream"));
      return;
    }
    run(() -> readFrom(memory.resume(chunk), chunk.offset()));
  }

  /** Reads by a new channel; the one before is given up. */
  private void readFrom(long offset, long chunk) throws IOException {
    Channel before = reading;
    reading = null;
    before.abort();
    Channel channel = newChannel(PREFETCH);
    consume(channel, offset, new Reading(channel, chunk));
  }

  /** What one channel reads, message by message. */
  private final class Reading implements DeliveryHandler {
    private final Channel channel;
    private final long chunk;
    private boolean first = true;
    private int unacknowledged;

    Reading(Channel channel, long chunk) {
      this.channel = channel;
      this.chunk = chunk;
    }

    @Override
    public void take(Delivery delivery) throws IOException {
      heardAt = System.nanoTime();
      TapMemory.Place place = placeOf(delivery);
      if (place != null) {
        boolean wasFirst = first;
        first = false;
        if (wasFirst && memory.isElsewhere(place)) {
          long anew = memory.beginAnew(chunk);
          run(() -> readFrom(anew, chunk));
          return;
        }
        memory.read(place);
      }
      String mark = Marks.of(delivery.getProperties());
      boolean wanted = mark != null && memory.note(mark);
      unacknowledged++;
      if (unacknowledged >= PREFETCH / 4) {
        unacknowledged = 0;
        channel.basicAck(delivery.getEnvelope().getDeliveryTag(), true);
      }
      if (wanted) {
        onArrival.run();
      }
    }
  }

  /** Where a message is in the stream, and what tells it from another one there; null outside a stream. */
  private static TapMemory.Place placeOf(Delivery delivery) {
    AMQP.BasicProperties properties = delivery.getProperties();
    if (!(Marks.headersOf(properties).get(ChannelConsumer.STREAM_OFFSET) instanceof Number offset)) {
      return null;
    }
    List<Object> looks = Arrays.asList(
        Marks.of(properties),
        delivery.getEnvelope().getRoutingKey(),
        properties.getTimestamp(),
        delivery.getBody().length,
        Arrays.hashCode(delivery.getBody()));
    return new TapMemory.Place(offset.longValue(), looks);
  }

  // What went wrong

  /** An IOException is out of reach, a refusal the broker's own answer. */
  private static Exception asError(Throwable cause) {
    if (cause instanceof TapRefusedException refused) {
      return refused;
    }
    if (cause instanceof AuthenticationFailureException || cause instanceof PossibleAuthenticationFailureException) {
      return new TapRefusedException("authentication: " + cause.getMessage());
    }
    for (Throwable each = cause; each != null; each = each.getCause()) {
      if (each instanceof ShutdownSignalException signal) {
        if (signal.getReason() instanceof AMQP.Channel.Close close) {
          return new TapRefusedException(close.getReplyCode() + " " + close.getReplyText());
        }
        if (signal.getReason() instanceof AMQP.Connection.Close close && close.getReplyCode() == NOT_ALLOWED) {
          return new TapRefusedException(close.getReplyCode() + " " + close.getReplyText());
        }
      }
    }
    String words = cause.getMessage();
    for (Throwable each = cause; (words == null || words.isEmpty()) && each != null; each = each.getCause()) {
      words = each.getMessage();
    }
    return new IOException(words == null || words.isEmpty() ? cause.getClass().getSimpleName() : words, cause);
  }
}
