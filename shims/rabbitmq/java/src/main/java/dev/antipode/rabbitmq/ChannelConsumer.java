package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Consumer;
import com.rabbitmq.client.DeliverCallback;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.ShutdownSignalException;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.RedeliverException;
import dev.antipode.shim.CallSite;
import dev.antipode.shim.Logs;
import dev.antipode.shim.RegisteredStore;
import java.io.IOException;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.function.BiConsumer;

/** Consuming by one channel: one scope a message, filled from the message's own header (SCOPE-6, PROP-17, BAR-45). */
final class ChannelConsumer {
  /** The header that a stream queue adds to each delivery. A stream takes no message back: it closes the connection. */
  static final String STREAM_OFFSET = "x-stream-offset";

  private final RegisteredStore store;
  private final RabbitOptions options;
  private final MessageScopes scopes;
  private final Returns returns;
  private final BiConsumer<Long, String> arrived;

  /** {@code arrived} takes a tracked message's delivery tag, if it is known to be a consumer's, and its mark. */
  ChannelConsumer(RegisteredStore store, RabbitOptions options, Returns returns, BiConsumer<Long, String> arrived) {
    this.store = store;
    this.options = options;
    this.scopes = new MessageScopes(store, options);
    this.returns = returns;
    this.arrived = arrived;
  }

  MessageScopes scopes() {
    return scopes;
  }

  /** A callback that runs in its message's scope; {@code came} is told of each message before. */
  DeliverCallback scoped(DeliverCallback callback, boolean autoAck, java.util.function.Consumer<AMQP.BasicProperties> came) {
    String site = CallSite.current();
    return (consumerTag, delivery) -> {
      came.accept(delivery.getProperties());
      handle(
          delivery.getEnvelope(),
          delivery.getProperties(),
          autoAck,
          site,
          (MessageHandler<IOException>) () -> callback.handle(consumerTag, delivery));
    };
  }

  /** A consumer whose deliveries run in their message's scope; {@code came} likewise. */
  Consumer scoped(Consumer consumer, boolean autoAck, java.util.function.Consumer<AMQP.BasicProperties> came) {
    return new ScopedConsumer(consumer, autoAck, came);
  }

  /** Handles one message that came to a consumer, which the application registered at this site. */
  private <E extends Exception> void handle(
      Envelope envelope, AMQP.BasicProperties properties, boolean autoAck, String site, MessageHandler<E> work) throws E {
    if (!autoAck) {
      returns.handedOut(envelope.getDeliveryTag());
    }
    handle(envelope, properties, autoAck, true, (MessageHandler<E>) () -> {
      LineageScope.current().endpoint(() -> site);
      work.run();
    });
  }

  /**
   * Handles one message in its scope; a {@link RedeliverException} out of that gives it back.
   *
   * @param wasPushed it is known to have come to a consumer: only then does its tag tell it from those of before a recovery
   * @return whether it was handled: false where it goes back
   */
  <E extends Exception> boolean handle(
      Envelope envelope, AMQP.BasicProperties properties, boolean autoAck, boolean wasPushed, MessageHandler<E> work)
      throws E {
    Map<String, Object> headers = Marks.headersOf(properties);
    MessageDelivery delivery = delivery(headers, autoAck);
    long tag = envelope.getDeliveryTag();
    RedeliverException wanted = null;
    try (LineageScope scope = open(properties, wasPushed ? tag : null, delivery)) {
      if (delivery.canRedeliver()) {
        returns.opened(tag, delivery);
      }
      try {
        work.run();
      } catch (RedeliverException | CompletionException error) {
        wanted = redeliver(error);
        if (!returns.closed(tag, delivery, wanted != null)) {
          throw error;
        }
      } finally {
        returns.closed(tag, delivery, false);
      }
    }
    if (wanted == null) {
      return true;
    }
    say(wanted);
    returns.giveBackAfter(tag, options.redeliverDelay());
    return false;
  }

  /** What a barrier threw, also where its future was joined; null for anything else. */
  private static RedeliverException redeliver(RuntimeException error) {
    Throwable thrown = error instanceof CompletionException ? error.getCause() : error;
    return thrown instanceof RedeliverException wanted ? wanted : null;
  }

  /** Opens the scope of one message, for try-with-resources; {@code tag} is null where it is not known to be a consumer's. */
  LineageScope open(AMQP.BasicProperties properties, Long tag, MessageDelivery delivery) {
    LineageScope scope = scopes.open(Marks.headersOf(properties), delivery);
    note(scope, properties, tag);
    return scope;
  }

  private static MessageDelivery delivery(Map<String, Object> headers, boolean autoAck) {
    if (autoAck) {
      return new MessageDelivery(false, "it is consumed with autoAck, so the broker has forgotten it", headers);
    }
    if (headers.containsKey(STREAM_OFFSET)) {
      return new MessageDelivery(false, "a stream queue takes no message back", headers);
    }
    return new MessageDelivery(true, "", headers);
  }

  /** What the message's coming itself proves. */
  private void note(LineageScope scope, AMQP.BasicProperties properties, Long tag) {
    if (store.mode() != Mode.OFF && scope.held().sectionText(store.name()) != null) {
      String mark = Marks.of(properties);
      if (mark != null) {
        arrived.accept(tag, mark);
      }
    }
  }

  private void say(RedeliverException error) {
    Duration delay = options.redeliverDelay();
    String words = String.valueOf(error.words());
    int end = words.indexOf('\n');
    Logs.info(
        error.code(),
        "redeliver " + store.name(),
        "a message of %s goes back to its queue in %s s: %s"
            .formatted(
                store.name(),
                BigDecimal.valueOf(delay.toMillis(), 3).stripTrailingZeros().toPlainString(),
                end < 0 ? words : words.substring(0, end)),
        "redelivered");
  }

  /** The application's consumer, with its deliveries in scopes. */
  private final class ScopedConsumer implements Consumer {
    private final Consumer theirs;
    private final boolean autoAck;
    private final java.util.function.Consumer<AMQP.BasicProperties> came;
    private final String site = CallSite.current();

    ScopedConsumer(Consumer theirs, boolean autoAck, java.util.function.Consumer<AMQP.BasicProperties> came) {
      this.theirs = theirs;
      this.autoAck = autoAck;
      this.came = came;
    }

    @Override
    public void handleDelivery(
        String consumerTag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) throws IOException {
      came.accept(properties);
      handle(
          envelope,
          properties,
          autoAck,
          site,
          (MessageHandler<IOException>) () -> theirs.handleDelivery(consumerTag, envelope, properties, body));
    }

    @Override
    public void handleConsumeOk(String consumerTag) {
      theirs.handleConsumeOk(consumerTag);
    }

    @Override
    public void handleCancelOk(String consumerTag) {
      theirs.handleCancelOk(consumerTag);
    }

    @Override
    public void handleCancel(String consumerTag) throws IOException {
      theirs.handleCancel(consumerTag);
    }

    @Override
    public void handleShutdownSignal(String consumerTag, ShutdownSignalException signal) {
      theirs.handleShutdownSignal(consumerTag, signal);
    }

    @Override
    public void handleRecoverOk(String consumerTag) {
      theirs.handleRecoverOk(consumerTag);
    }
  }
}
