package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.GetResponse;
import dev.antipode.ConfigurationException;
import dev.antipode.LineageScope;
import dev.antipode.RedeliverException;
import dev.antipode.Store;
import dev.antipode.UnfitStoreException;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shims;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/**
 * Antipode for RabbitMQ, with amqp-client.
 *
 * <pre>{@code
 * Channel channel = AntipodeRabbit.wrap(connection.createChannel(), "notifications");
 * channel.basicPublish("notifications", "", null, body);   // carries the scope's lineage in the header antipode-lineage
 * channel.basicConsume("followers", false, (tag, message) -> {   // runs in the message's own scope
 *   Antipode.barrier(BarrierOptions.defaults().onTimeout(Policy.REDELIVER));   // waits for what the message depends on
 *   channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
 * }, tag -> {});
 * }</pre>
 */
public final class AntipodeRabbit {
  private static final long MOST_BYTES = 256L * 1024 * 1024;
  private static final long LEAST_SEGMENT = 1_000_000;

  static {
    CallSite.skipPackages("com.rabbitmq.");
  }

  private AntipodeRabbit() {}

  /**
   * The same channel, whose messages carry lineages. It shares the state of the one passed in, which stays plain.
   *
   * @param store the queue's logical name, the same in every service and region
   * @throws ConfigurationException for a name that cannot be
   */
  public static Channel wrap(Channel channel, String store) {
    return wrap(channel, RabbitOptions.named(store));
  }

  /**
   * The same channel, whose messages carry lineages. What it publishes carries the scope's lineage in a copy of the
   * message's headers; {@code DeliverCallback} and {@code Consumer} of what it consumes run in a scope of their message.
   * For {@code basicGet}, and for work in other threads, there is {@link #handle}.
   *
   * @throws ConfigurationException for options that cannot be
   * @throws UnfitStoreException where a tap cannot be read
   */
  public static Channel wrap(Channel channel, RabbitOptions options) {
    return wrapping(options).apply(channel);
  }

  /**
   * What wraps each of many channels as {@link #wrap(Channel, RabbitOptions)} does: the store is joined and its taps are looked
   * at once, here, and never by a channel. For pools and frameworks that open channels by themselves.
   *
   * @throws ConfigurationException for options that cannot be
   * @throws UnfitStoreException where a tap cannot be read
   */
  public static ChannelWrapping wrapping(RabbitOptions options) {
    return new ChannelWrapping(join(options), options);
  }

  /**
   * The same connection, whose channels are wrapped as they are opened.
   *
   * @throws ConfigurationException for a name that cannot be
   */
  public static Connection wrap(Connection connection, String store) {
    return wrap(connection, RabbitOptions.named(store));
  }

  /**
   * The same connection, whose channels are wrapped as they are opened.
   *
   * @throws ConfigurationException for options that cannot be
   * @throws UnfitStoreException where a tap cannot be read
   */
  public static Connection wrap(Connection connection, RabbitOptions options) {
    Connection plain = WrappedConnection.plainOf(connection);
    RegisteredStore store = join(options);
    Broker broker = Broker.of(plain);
    store.useServerAlone(broker);
    return WrappedConnection.of(plain, channel -> WrappedChannel.of(channel, store, options, broker));
  }

  /**
   * Registers a queue whose messages this process waits for, and neither publishes nor consumes.
   *
   * @throws UnfitStoreException where a tap cannot be read
   */
  public static Store register(RabbitOptions options) {
    return join(options);
  }

  private static RegisteredStore join(RabbitOptions options) {
    for (Tap tap : options.taps()) {
      TapProbe.check(options.store().name(), tap, options.store().onUnfit());
    }
    return Shims.join(options.store(), RabbitShim::new);
  }

  // Messages by hand

  /**
   * Handles one message in a scope of its own: for {@code basicGet}, and work handed to other threads. A barrier inside with
   * {@code onTimeout(REDELIVER)} ends it and gives the message back after the delay.
   *
   * <p>Once the client's recovery has taken the channel to another broker, only what its consumers got ({@link Delivery})
   * proves its own arrival: what was pulled may have come before.
   *
   * @param channel the wrapped channel that the message came by
   * @param autoAck the message was taken with automatic acknowledgement, so it cannot go back
   * @return whether it was handled; false where it goes back to its queue
   * @throws ConfigurationException for a channel that was not wrapped
   * @throws RedeliverException where it is to go back and cannot
   */
  public static <E extends Exception> boolean handle(
      Channel channel, Envelope envelope, AMQP.BasicProperties properties, boolean autoAck, MessageHandler<E> work)
      throws E {
    return behind(channel).consuming().handle(envelope, properties, autoAck, false, work);
  }

  /** {@link #handle(Channel, Envelope, AMQP.BasicProperties, boolean, MessageHandler)} of what {@code basicGet} returned. */
  public static <E extends Exception> boolean handle(
      Channel channel, GetResponse message, boolean autoAck, MessageHandler<E> work) throws E {
    return handle(channel, message.getEnvelope(), message.getProps(), autoAck, work);
  }

  /** {@link #handle(Channel, Envelope, AMQP.BasicProperties, boolean, MessageHandler)} of what a callback was given. */
  public static <E extends Exception> boolean handle(
      Channel channel, Delivery message, boolean autoAck, MessageHandler<E> work) throws E {
    return behind(channel).consuming().handle(message.getEnvelope(), message.getProperties(), autoAck, true, work);
  }

  /**
   * Opens the scope of one message, for try-with-resources. A barrier in it cannot give the message back: {@link #handle}
   * can. Nor is its coming a proof any more once the client's recovery has taken the channel to another broker.
   *
   * @param channel the wrapped channel that the message came by
   * @throws ConfigurationException for a channel that was not wrapped
   */
  public static LineageScope scopeOf(Channel channel, AMQP.BasicProperties properties) {
    String detail = "scopeOf() cannot give it back: use AntipodeRabbit.handle(channel, message, autoAck, …)";
    MessageDelivery delivery = new MessageDelivery(false, detail, Marks.headersOf(properties));
    return behind(channel).consuming().open(properties, null, delivery);
  }

  /**
   * What opens the scopes of a queue's messages from their headers alone: for frameworks that take messages by the client and
   * hand them to threads of their own.
   *
   * @throws ConfigurationException for options that cannot be
   * @throws UnfitStoreException where a tap cannot be read
   */
  public static MessageScopes scopes(RabbitOptions options) {
    return new MessageScopes(join(options), options);
  }

  private static WrappedChannel behind(Channel channel) {
    WrappedChannel wrapped = WrappedChannel.behind(channel);
    if (wrapped == null) {
      throw new ConfigurationException("AP501", "want a channel that AntipodeRabbit.wrap() has returned");
    }
    return wrapped;
  }

  // Taps

  /** Declares {@code EXCHANGE.tap}, bound to all of an exchange; returns its name. */
  public static String declareTap(Channel channel, String exchange) throws IOException {
    return declareTap(channel, exchange, exchange + ".tap");
  }

  /** Declares a tap of this name, bound to all of an exchange; returns its name. */
  public static String declareTap(Channel channel, String exchange, String queue) throws IOException {
    return declareTap(channel, exchange, queue, "#", MOST_BYTES);
  }

  /**
   * Declares a tap: a stream queue, bound to an exchange. For the operator or the application's own set-up.
   *
   * @param channel to a broker of the region that waits
   * @param routingKey what is bound; {@code #} is everything of a topic exchange, and of a fanout exchange any key is; a
   *     direct exchange needs a call for each of its keys
   * @param maxBytes how much of the past the broker keeps at least a quarter of
   * @return the queue's name
   */
  public static String declareTap(Channel channel, String exchange, String queue, String routingKey, long maxBytes)
      throws IOException {
    Map<String, Object> arguments = new HashMap<>();
    arguments.put("x-queue-type", "stream");
    arguments.put("x-max-length-bytes", maxBytes);
    arguments.put("x-stream-max-segment-size-bytes", Math.max(maxBytes / 4, LEAST_SEGMENT));
    channel.queueDeclare(queue, true, false, false, arguments);
    channel.queueBind(queue, exchange, routingKey);
    return queue;
  }
}
