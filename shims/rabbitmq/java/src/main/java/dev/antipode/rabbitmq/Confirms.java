package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConfirmListener;
import com.rabbitmq.client.ReturnListener;
import dev.antipode.Opaque;
import dev.antipode.shim.Write;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * Publisher confirmations of one channel: a tracked message is pending until the broker has confirmed it. A negative
 * confirmation, or the channel's end, leaves its outcome unknown; one that came back as unroutable is not recorded.
 */
final class Confirms implements ConfirmListener, ReturnListener {
  private final Channel plain;
  private final ReentrantLock sending = new ReentrantLock(); // a message's number is the channel's next one
  private final ConcurrentNavigableMap<Long, SentMessage> waiting = new ConcurrentSkipListMap<>();
  private final Map<String, SentMessage> byMark = new ConcurrentHashMap<>();
  private final AtomicInteger ends = new AtomicInteger();

  private static final class SentMessage {
    private final Write write;
    private final Opaque version;
    private volatile boolean returned;

    SentMessage(Write write, Opaque version) {
      this.write = write;
      this.version = version;
    }
  }

  Confirms(Channel plain) {
    this.plain = plain;
  }

  /** Begins to hear of confirmations and returns; before the application's own listeners, as far as those come later. */
  void listen() {
    plain.addConfirmListener(this);
    plain.addReturnListener(this);
  }

  /** Whether the broker confirms what this channel publishes. */
  boolean areAsked() {
    return plain.getNextPublishSeqNo() > 0;
  }

  /** What sends a message. */
  @FunctionalInterface
  interface Send {
    void run() throws Throwable;
  }

  /** Sends a message, and records it once it is confirmed. */
  void send(Write write, Opaque version, Send send) throws Throwable {
    SentMessage sent = new SentMessage(write, version);
    sending.lock();
    try {
      int endsBefore = ends.get();
      long number = plain.getNextPublishSeqNo();
      waiting.put(number, sent);
      byMark.put(version.mark(), sent);
      try {
        write.inFlight();
        send.run();
      } catch (AlreadyClosedException | IllegalArgumentException error) { // it never left
        forget(number, sent);
        write.abandon();
        throw error;
      } catch (Throwable error) {
        forget(number, sent);
        write.outcomeUnknown();
        throw error;
      }
      if (ends.get() != endsBefore && forget(number, sent)) { // numbers begin anew where a channel is recovered
        write.outcomeUnknown();
      }
    } finally {
      sending.unlock();
    }
  }

  /** Sends a message that nobody asks about: it has a number, too. */
  void sendUnheard(Send send) throws Throwable {
    sending.lock();
    try {
      send.run();
    } finally {
      sending.unlock();
    }
  }

  private boolean forget(long number, SentMessage sent) {
    byMark.remove(sent.version.mark());
    return waiting.remove(number, sent);
  }

  @Override
  public void handleAck(long number, boolean multiple) {
    settle(number, multiple, sent -> {
      if (sent.returned) {
        sent.write.abandon();
      } else {
        sent.write.record(sent.version);
      }
    });
  }

  @Override
  public void handleNack(long number, boolean multiple) {
    settle(number, multiple, sent -> sent.write.outcomeUnknown());
  }

  private void settle(long number, boolean multiple, Consumer<SentMessage> outcome) {
    if (!multiple) {
      settle(number, outcome);
      return;
    }
    waiting.headMap(number, true).keySet().forEach(each -> settle(each, outcome));
  }

  private void settle(long number, Consumer<SentMessage> outcome) {
    SentMessage sent = waiting.remove(number);
    if (sent != null) {
      byMark.remove(sent.version.mark());
      outcome.accept(sent);
    }
  }

  /** No queue has it: the confirmation that follows confirms that alone. */
  @Override
  public void handleReturn(
      int code, String text, String exchange, String routingKey, AMQP.BasicProperties properties, byte[] body) {
    String mark = Marks.of(properties);
    SentMessage sent = mark == null ? null : byMark.get(mark);
    if (sent != null) {
      sent.returned = true;
    }
  }

  /** The channel has ended: nobody will ever say what became of the messages that were not confirmed. */
  void ended() {
    ends.incrementAndGet();
    settle(Long.MAX_VALUE, true, sent -> sent.write.outcomeUnknown());
  }
}
