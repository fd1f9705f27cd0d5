package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Consumer;
import com.rabbitmq.client.DeliverCallback;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.ShutdownSignalException;
import dev.antipode.shim.RegisteredStore;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.function.UnaryOperator;

/**
 * A channel that stands for a plain one: what concerns messages passes through here, everything else goes to the plain
 * channel, which stays plain.
 */
final class WrappedChannel implements InvocationHandler {
  private final Channel plain;
  private final RegisteredStore store;
  private final Confirms confirms;
  private final Returns returns;
  private final ChannelPublisher publishing;
  private final ChannelConsumer consuming;
  private final boolean tracks;
  private final UnaryOperator<Channel> likewise;

  private WrappedChannel(
      Channel plain,
      RegisteredStore store,
      RabbitOptions options,
      ChannelLocation whereabouts,
      UnaryOperator<Channel> likewise) {
    this.plain = plain;
    this.store = store;
    this.likewise = likewise;
    this.tracks = options.track();
    this.confirms = new Confirms(plain);
    this.returns = new Returns(plain);
    this.publishing = new ChannelPublisher(store, options, new Room(() -> plain.getConnection().getFrameMax()), confirms);
    RabbitShim shim = (RabbitShim) store.shim();
    shim.consumesBy(whereabouts);
    this.consuming =
        new ChannelConsumer(store, options, returns, (tag, mark) -> shim.arrived(whereabouts.of(tag), mark));
  }

  /** A channel that stands for this one, of a connection that the store knows as this broker. */
  static Channel of(Channel plain, RegisteredStore store, RabbitOptions options, Broker broker) {
    WrappedChannel handler = new WrappedChannel(
        plain, store, options, ChannelLocation.of(plain, broker), other -> of(other, store, options, broker));
    if (handler.tracks) {
      handler.confirms.listen();
      plain.addShutdownListener(signal -> {
        handler.confirms.ended();
        handler.publishing.ended();
      });
    }
    return (Channel) Proxies.of(plain, Channel.class, handler);
  }

  /** What is behind a wrapped channel; null for any other. */
  static WrappedChannel behind(Channel channel) {
    return Proxies.handlerOf(channel, WrappedChannel.class);
  }

  Channel plain() {
    return plain;
  }

  ChannelConsumer consuming() {
    return consuming;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
    switch (method.getName()) {
      case "basicPublish" -> {
        publish(method, args);
        return null;
      }
      case "basicConsume" -> scope(method, args);
      case "setDefaultConsumer" -> // whether it acknowledges by itself nobody knows
          args[0] = args[0] == null ? null : consuming.scoped((Consumer) args[0], true, came -> { });
      case "getConnection" -> {
        return WrappedConnection.of(WrappedConnection.plainOf(plain.getConnection()), likewise);
      }
      case "basicAck" -> {
        return settle(method, args, (Boolean) args[1], true);
      }
      case "basicNack" -> {
        return settle(method, args, (Boolean) args[1], !(Boolean) args[2]);
      }
      case "basicReject" -> {
        return settle(method, args, false, !(Boolean) args[1]);
      }
      case "basicRecover" -> {
        return returns.recovering(tag -> pass(method, args));
      }
      case "txCommit" -> {
        Transaction transaction = publishing.transaction();
        Object committed = transaction == null ? pass(method, args) : transaction.commit(() -> pass(method, args));
        returns.ended(true);
        return committed;
      }
      case "waitForConfirms", "waitForConfirmsOrDie" -> {
        return waited(method, args);
      }
      case "equals" -> {
        return proxy == args[0];
      }
      default -> { }
    }
    Object result = pass(method, args);
    switch (method.getName()) {
      case "basicGet" -> {
        if (result instanceof GetResponse got && !(Boolean) args[1]) {
          returns.handedOut(got.getEnvelope().getDeliveryTag());
        }
      }
      case "txSelect" -> {
        publishing.selected();
        returns.selected();
      }
      case "txRollback" -> {
        publishing.ended();
        returns.ended(false);
      }
      case "clearConfirmListeners" -> listen(() -> plain.addConfirmListener(confirms));
      case "clearReturnListeners" -> listen(() -> plain.addReturnListener(confirms));
      default -> { }
    }
    return result;
  }

  /** The application settles messages; {@code isForGood}: acknowledged, or rejected so that they do not come again. */
  private Object settle(Method method, Object[] args, boolean multiple, boolean isForGood) throws Throwable {
    return returns.settling((Long) args[0], multiple, isForGood, tag -> {
      Object[] sent = args.clone();
      sent[0] = tag;
      return pass(method, sent);
    });
  }

  private Object pass(Method method, Object[] args) throws Throwable {
    return Proxies.call(plain, method, args);
  }

  /** Waits for confirmations; where the channel has ended, what it left is known before the application hears of it. */
  private Object waited(Method method, Object[] args) throws Throwable {
    try {
      return pass(method, args);
    } catch (ShutdownSignalException | IOException error) {
      if (!plain.isOpen()) {
        confirms.ended();
      }
      throw error;
    }
  }

  private void listen(Runnable anew) {
    if (tracks) {
      anew.run();
    }
  }

  /** Exchange and routing key come first, the properties among the rest, in all of its forms. */
  private void publish(Method method, Object[] args) throws Throwable {
    int place = placeOf(method, AMQP.BasicProperties.class);
    AMQP.BasicProperties given = (AMQP.BasicProperties) args[place];
    Replies.MessageSender sending = () -> publishing.publish((String) args[0], (String) args[1], given, properties -> {
      Object[] sent = args.clone();
      sent[place] = properties;
      pass(method, sent);
    });
    if (store.records()) {
      Replies.asking(plain, given, sending);
    } else { // with mode=off an answer adds nothing (PROP-26)
      sending.send();
    }
  }

  /** Queue and, if it is said, automatic acknowledgement come first; a consumer or a callback among the rest. */
  private void scope(Method method, Object[] args) {
    boolean autoAck = args[1] instanceof Boolean said && said;
    String queue = (String) args[0];
    Replies.consuming(queue);
    java.util.function.Consumer<AMQP.BasicProperties> came = properties -> {
      if (store.records()) {
        Replies.came(plain, queue, properties, consuming.scopes());
      }
    };
    for (int place = 0; place < args.length; place++) {
      if (args[place] instanceof DeliverCallback callback) {
        args[place] = consuming.scoped(callback, autoAck, came);
      } else if (args[place] instanceof Consumer consumer) {
        args[place] = consuming.scoped(consumer, autoAck, came);
      }
    }
  }

  private static int placeOf(Method method, Class<?> type) {
    Class<?>[] types = method.getParameterTypes();
    for (int place = 0; place < types.length; place++) {
      if (types[place] == type) {
        return place;
      }
    }
    throw new IllegalStateException("this version of the client has another " + method);
  }
}
