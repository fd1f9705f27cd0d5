package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import dev.antipode.Key;
import dev.antipode.Opaque;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Write;

/** Publishing by one channel: each message carries its lineage, and is a write of its own where it is tracked. */
final class ChannelPublisher {
  private final RegisteredStore store;
  private final RabbitOptions options;
  private final Stamper stamping;
  private final Confirms confirms;
  private volatile Transaction transaction; // since txSelect

  ChannelPublisher(RegisteredStore store, RabbitOptions options, Room room, Confirms confirms) {
    this.store = store;
    this.options = options;
    this.stamping = new Stamper(store, options, room);
    this.confirms = confirms;
  }

  /** The client's own method, with the properties as they leave. */
  @FunctionalInterface
  interface Send {
    void with(AMQP.BasicProperties properties) throws Throwable;
  }

  void publish(String exchange, String routingKey, AMQP.BasicProperties given, Send send) throws Throwable {
    if (!options.track() || !store.records()) { // with mode=off what came in is passed on, and nothing added (PROP-26)
      AMQP.BasicProperties properties = stamping.stamped(Stamper.withoutMark(given), null);
      if (options.track()) {
        confirms.sendUnheard(() -> send.with(properties));
      } else {
        send.with(properties);
      }
      return;
    }
    Stamper.MarkedProperties marked = Stamper.marked(given);
    Key key = keyOf(exchange, routingKey);
    Opaque version = new Opaque(marked.mark());
    AMQP.BasicProperties properties = stamping.stamped(marked.properties(), store.writeId(key, version));
    Write write = store.begin(key);
    Transaction open = transaction;
    if (open == null && confirms.areAsked()) {
      confirms.send(write, version, () -> send.with(properties));
      return;
    }
    int endsBefore = open == null ? 0 : open.ends();
    try {
      send.with(properties);
    } catch (AlreadyClosedException | IllegalArgumentException error) { // it never left
      write.abandon();
      throw error;
    } catch (Throwable error) {
      write.outcomeUnknown();
      throw error;
    }
    if (open == null) {
      write.record(version);
    } else {
      open.add(write, version, endsBefore);
    }
  }

  private Key keyOf(String exchange, String routingKey) {
    if (exchange != null && !exchange.isEmpty()) {
      return Key.of(exchange);
    }
    return Key.of(routingKey == null || routingKey.isEmpty() ? store.name() : routingKey);
  }

  /** The channel is transactional from now on. */
  void selected() {
    if (transaction == null) {
      transaction = new Transaction();
    }
  }

  Transaction transaction() {
    return transaction;
  }

  /** The channel has ended, or is about to be made anew: the broker drops what was not committed. */
  void ended() {
    Transaction open = transaction;
    if (open != null) {
      open.rolledBack();
    }
  }
}
