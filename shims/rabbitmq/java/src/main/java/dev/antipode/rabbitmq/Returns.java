package dev.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import dev.antipode.ConfigurationException;
import dev.antipode.shim.Logs;
import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Messages of one channel that go back to their queue after a delay, and what the application has settled meanwhile.
 *
 * <p>A message goes back by {@code basicNack(requeue)}, which a broker counts as a failed delivery. Until then it stays
 * unacknowledged: should the channel or the process end first, the broker gives it back by itself.
 *
 * <p>One lock is held over what is noted here and over the command that it stands for: an acknowledgement of several between
 * the two would take a message along that is about to go back, which nobody would ever handle.
 */
final class Returns {
  // A pool: a broker that takes nothing in may hold one of them up, and not the other channels'.
  private static final Executor POOL = Executors.newCachedThreadPool(work -> {
    Thread thread = new Thread(null, work, "antipode-rabbitmq-returns", 0, false);
    thread.setDaemon(true);
    return thread;
  });

  private static final int MOST_RETURNING = 1000; // no tag comes twice on a channel
  private static final Duration PAUSE = Duration.ofSeconds(1); // until it is tried again where no thread was to be had

  private final Channel plain;
  private final Executor threads;
  private final ReentrantLock lock = new ReentrantLock();
  private final Set<Long> due = new HashSet<>(); // under the lock, like the next
  private final Map<MessageDelivery, Long> open = new HashMap<>();
  private final Set<Long> returning = Collections.newSetFromMap(new LinkedHashMap<>() { // the last that go back, or have
    private static final long serialVersionUID = 1L;

    @Override
    protected boolean removeEldestEntry(Map.Entry<Long, Boolean> eldest) {
      return size() > MOST_RETURNING;
    }
  });
  private final NavigableSet<Long> handed = new TreeSet<>(); // what the application has and has not settled; under the lock
  private Set<Long> uncommitted; // of what it has settled, in its transaction; null where the channel has none; under the lock
  private final Queue<Long> ripe = new ConcurrentLinkedQueue<>(); // their delay has passed
  private final AtomicInteger undone = new AtomicInteger(); // of those; one thread a channel sees to them

  Returns(Channel plain) {
    this(plain, POOL);
  }

  /** The same; {@code threads} start what may be held up. */
  Returns(Channel plain, Executor threads) {
    this.plain = plain;
    this.threads = threads;
  }

  /** The application gets a message that it is to settle. */
  void handedOut(long tag) {
    locked(() -> handed.add(tag));
  }

  /** The channel is transactional from now on: what it settles counts when it is committed. */
  void selected() {
    locked(() -> uncommitted = uncommitted == null ? new HashSet<>() : uncommitted);
  }

  /** The application's transaction has ended: what it settled it still has to where that was rolled back. */
  void ended(boolean isCommitted) {
    locked(() -> {
      if (uncommitted != null && !isCommitted) {
        handed.addAll(uncommitted);
      }
      if (uncommitted != null) {
        uncommitted.clear();
      }
    });
  }

  /** A message's scope has been opened. */
  void opened(long tag, MessageDelivery delivery) {
    locked(() -> open.put(delivery, tag));
  }

  /**
   * A message's scope has ended.
   *
   * @param goesBack it is to go back, if it still can; {@link #giveBackAfter} says when
   * @return whether it will
   */
  boolean closed(long tag, MessageDelivery delivery, boolean goesBack) {
    lock.lock();
    try {
      boolean waits = goesBack && delivery.canRedeliver();
      if (waits) {
        due.add(tag);
        returning.add(tag);
      }
      delivery.settle("its scope has ended");
      open.remove(delivery);
      return waits;
    } finally {
      lock.unlock();
    }
  }

  /** Gives a message back after a delay; the channel does its work meanwhile. Where that cannot be timed, at once (BAR-61). */
  void giveBackAfter(long tag, Duration delay) {
    try {
      later(delay, () -> {
        ripe.add(tag);
        if (undone.getAndIncrement() == 0) {
          startGivingBack();
        }
      });
    } catch (OutOfMemoryError error) {
      locked(() -> giveBack(tag));
    }
  }

  private static void later(Duration delay, Runnable work) {
    Executor timers = Runnable::run; // those of the JDK, which do no more than this
    CompletableFuture.delayedExecutor(delay.toNanos(), TimeUnit.NANOSECONDS, timers).execute(work);
  }

  /** Has a thread give back what is ripe; where none is to be had, tries again. */
  private void startGivingBack() {
    try {
      threads.execute(this::giveBackRipe);
    } catch (OutOfMemoryError error) {
      later(PAUSE, this::startGivingBack);
    }
  }

  private void giveBackRipe() {
    boolean isLast = false;
    while (!isLast) {
      try {
        long tag = ripe.remove();
        locked(() -> giveBack(tag));
      } catch (Throwable error) { // our own fault, and the broker's to give back: the next one goes back all the same (BAR-61)
        continue;
      } finally {
        isLast = undone.decrementAndGet() == 0;
      }
    }
  }

  /** What the application settles messages by, up to this tag. */
  @FunctionalInterface
  interface Settle {
    Object run(long tag) throws Throwable;
  }

  /**
   * The application settles messages itself: none of them may be given back any more. Those that still wait and would be
   * acknowledged along with a later one go back first, at once. All (tag 0) would be also the copies that have come again
   * meanwhile: it is sent as the last tag that the application has; nothing is where it has none.
   *
   * @param isForGood they are acknowledged, or rejected so that they do not come again
   * @throws ConfigurationException for a message that goes back, or has, and would be lost by that (PROP-36)
   */
  Object settling(long tag, boolean multiple, boolean isForGood, Settle settle) throws Throwable {
    lock.lock();
    try {
      if (isForGood && (due.contains(tag) || returning.contains(tag))) {
        throw new ConfigurationException(
            "AP113",
            "a message of RabbitMQ goes back to its queue, as its barrier asked, and cannot be acknowledged or dropped: it "
                + "would be lost. Acknowledge where it is handled, or behind that only where handle(...) gave true.");
      }
      open.forEach((delivery, other) -> {
        if (other == tag || (multiple && (other < tag || tag == 0))) {
          delivery.settle("it has been acknowledged or rejected already");
        }
      });
      due.remove(tag);
      if (handed.remove(tag) && uncommitted != null) {
        uncommitted.add(tag);
      }
      if (!multiple) {
        return settle.run(tag);
      }
      due.stream().filter(other -> other < tag || tag == 0).sorted().toList().forEach(this::giveBack);
      boolean isLimited = tag == 0 && !returning.isEmpty();
      if (isLimited && handed.isEmpty()) {
        return null;
      }
      long upTo = isLimited ? handed.last() : tag;
      NavigableSet<Long> settled = upTo == 0 ? handed : handed.headSet(upTo, true);
      if (uncommitted != null) {
        uncommitted.addAll(settled);
      }
      settled.clear();
      return settle.run(upTo);
    } finally {
      lock.unlock();
    }
  }

  /** The broker takes all unacknowledged messages back itself ({@code basicRecover}). */
  Object recovering(Settle recover) throws Throwable {
    lock.lock();
    try {
      due.clear();
      handed.clear();
      open.keySet().forEach(delivery -> delivery.settle("the channel was recovered"));
      return recover.run(0);
    } finally {
      lock.unlock();
    }
  }

  /** With the lock. */
  private void giveBack(long tag) {
    if (!due.remove(tag)) {
      return;
    }
    handed.remove(tag);
    try {
      plain.basicNack(tag, false, true);
    } catch (IOException | RuntimeException error) {
      Logs.info("AP518", "return", "the channel ended before a message went back; the broker gives it back: " + error);
    }
  }

  private void locked(Runnable work) {
    lock.lock();
    try {
      work.run();
    } finally {
      lock.unlock();
    }
  }
}
