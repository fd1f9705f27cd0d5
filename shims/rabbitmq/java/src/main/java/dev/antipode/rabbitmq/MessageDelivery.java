package dev.antipode.rabbitmq;

import dev.antipode.Delivery;
import java.util.Map;

/** A message of RabbitMQ. It cannot go back any more when it has been settled, or its scope has ended. */
final class MessageDelivery extends Delivery {
  private final Map<String, Object> headers;

  MessageDelivery(boolean canRedeliver, String detail, Map<String, Object> headers) {
    super(canRedeliver, detail);
    this.headers = headers;
  }

  /** The message's headers as they came. */
  Map<String, Object> headers() {
    return headers;
  }
}
