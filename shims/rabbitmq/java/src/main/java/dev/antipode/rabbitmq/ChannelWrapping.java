package dev.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import dev.antipode.shim.RegisteredStore;
import java.util.function.UnaryOperator;

/** Wraps each of many channels, for pools and frameworks that open them. {@link AntipodeRabbit#wrapping} makes it. */
public final class ChannelWrapping implements UnaryOperator<Channel> {
  private final RegisteredStore store;
  private final RabbitOptions options;

  ChannelWrapping(RegisteredStore store, RabbitOptions options) {
    this.store = store;
    this.options = options;
  }

  /** The same channel, as {@link AntipodeRabbit#wrap(Channel, RabbitOptions)} returns it. */
  @Override
  public Channel apply(Channel channel) {
    WrappedChannel wrapped = WrappedChannel.behind(channel);
    Channel plain = wrapped == null ? channel : wrapped.plain();
    Broker broker = Broker.of(WrappedConnection.plainOf(plain.getConnection()));
    store.useServerAlone(broker);
    return WrappedChannel.of(plain, store, options, broker);
  }

  /** What opens the scopes of the messages that come by them, as {@link AntipodeRabbit#scopes} does. */
  public MessageScopes scopes() {
    return new MessageScopes(store, options);
  }
}
