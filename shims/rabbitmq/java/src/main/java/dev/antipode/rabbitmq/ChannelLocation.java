package dev.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Recoverable;
import com.rabbitmq.client.RecoverableChannel;
import com.rabbitmq.client.RecoveryListener;
import com.rabbitmq.client.impl.recovery.AutorecoveringChannel;
import com.rabbitmq.client.impl.recovery.RecoveryAwareChannelN;

/**
 * At which broker a channel is, and which of its messages came from there: the client's own recovery takes the next address
 * of its list, and what came before from another broker has not arrived at this one.
 */
final class ChannelLocation implements RecoveryListener {
  private final Channel plain;
  private final Broker home;
  private volatile Channel noted; // whose place it is
  private volatile Broker now;
  private volatile boolean hasMoved;

  private ChannelLocation(Channel plain, Broker home) {
    this.plain = plain;
    this.home = home;
    note();
  }

  /**
   * Of a channel that was opened by a client's connection.
   *
   * @param home the broker under which the store knows that connection
   */
  static ChannelLocation of(Channel plain, Broker home) {
    ChannelLocation made = new ChannelLocation(plain, home);
    if (plain instanceof RecoverableChannel recovering) {
      recovering.addRecoveryListener(made);
      made.note(); // it may have been recovered meanwhile
    }
    return made;
  }

  /** Where the store's own server of this channel was when the client was wrapped. */
  Broker home() {
    return home;
  }

  /** Where the channel is now. */
  Broker now() {
    return now;
  }

  /**
   * The broker that a message came from.
   *
   * @param tag the delivery tag of what a consumer got: those of before a recovery are smaller than all that come after it;
   *     null for other messages, whose tags the client counts anew
   * @return null where that cannot be told
   */
  Broker of(Long tag) {
    Channel open = delegate();
    if (open != noted || open == plain) {
      note();
    }
    if (!hasMoved) {
      return now;
    }
    return tag != null && open instanceof RecoveryAwareChannelN known && tag > known.getActiveDeliveryTagOffset()
        ? Broker.of(open.getConnection())
        : null;
  }

  /** Whether the channel can be used. */
  boolean isOpen() {
    return plain.isOpen();
  }

  /** The channel that is open now: the one given hands all on to it, and its connection may still name the one before. */
  private Channel delegate() {
    return plain instanceof AutorecoveringChannel recovering ? recovering.getDelegate() : plain;
  }

  private synchronized void note() {
    Channel open = delegate();
    Broker there = Broker.of(open.getConnection());
    hasMoved |= !there.equals(now == null ? home : now);
    now = there;
    noted = open;
  }

  /** The channel has been opened anew, and nothing was consumed by it yet. */
  @Override
  public void handleRecoveryStarted(Recoverable recovered) {
    note();
  }

  @Override
  public void handleRecovery(Recoverable recovered) {
    note();
  }
}
