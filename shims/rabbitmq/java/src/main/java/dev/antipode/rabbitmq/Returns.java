package dev.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Messages of one channel that go back to their queue after a delay, and what the application has settled meanwhile.
 *
 * <p>A message goes back by {@code basicNack(requeue)}, which a broker counts as a failed delivery. Until then it stays
 * unacknowledged: should the channel or the process end first, the broker gives it back by itself.
 */
final class Returns {
  private static final Logger LOGGER = Logger.getLogger("dev.antipode");
  // A pool: a broker that takes nothing in may hold one of them up, and not the others.
  private static final Executor THREADS = Executors.newCachedThreadPool(work -> {
    Thread thread = new Thread(work, "antipode-rabbitmq-returns");
    thread.setDaemon(true);
    return thread;
  });

  private final Channel plain;
  private final Map<Long, Boolean> due = new ConcurrentHashMap<>();
  private final Map<MessageDelivery, Long> open = new ConcurrentHashMap<>();

  Returns(Channel plain) {
    this.plain = plain;
  }

  /** A message's scope has been opened. */
  void opened(long tag, MessageDelivery delivery) {
    open.put(delivery, tag);
  }

  /** A message's scope has ended. */
  void closed(MessageDelivery delivery) {
    open.remove(delivery);
  }

  /** Gives a message back after a delay; the channel does its work meanwhile. */
  void giveBack(long tag, Duration delay) {
    due.put(tag, true);
    CompletableFuture.delayedExecutor(delay.toNanos(), TimeUnit.NANOSECONDS, THREADS).execute(() -> giveBack(tag));
  }

  /**
   * The application is about to settle messages itself: none of them may be given back any more. Those that still wait and
   * would be acknowledged along with a later one go back first, at once.
   */
  void settling(long tag, boolean multiple) {
    open.forEach((delivery, other) -> {
      if (other == tag || (multiple && (other < tag || tag == 0))) {
        delivery.settle("it has been acknowledged or rejected already");
      }
    });
    due.remove(tag);
    if (multiple) {
      due.keySet().stream().filter(other -> other < tag || tag == 0).toList().forEach(this::giveBack);
    }
  }

  /** The broker takes all unacknowledged messages back itself ({@code basicRecover}). */
  void forget() {
    due.clear();
    open.keySet().forEach(delivery -> delivery.settle("the channel was recovered"));
  }

  private void giveBack(long tag) {
    if (due.remove(tag) == null) {
      return;
    }
    try {
      plain.basicNack(tag, false, true);
    } catch (IOException | ShutdownSignalException error) {
      LOGGER.log(
          Level.FINE, "the channel ended before a message went back by itself; the broker gives it back: {0}", error);
    }
  }
}
