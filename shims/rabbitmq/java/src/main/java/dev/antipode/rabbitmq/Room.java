package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.LongString;
import com.rabbitmq.client.impl.Frame;
import java.io.IOException;
import java.util.Map;
import java.util.function.IntSupplier;

/** Whether properties fit into one frame, as AMQP wants: a longer one cannot be sent (PROP-19). */
final class Room {
  private static final long REST = 4096; // more than all properties but the headers take

  private final IntSupplier frameMax;

  /** The longest frame that was agreed with the broker, in bytes; 0 for no limit. */
  Room(IntSupplier frameMax) {
    this.frameMax = frameMax;
  }

  int frameMax() {
    return frameMax.getAsInt();
  }

  boolean holds(AMQP.BasicProperties properties) {
    int most = frameMax();
    if (most <= 0) {
      return true;
    }
    long atMost = REST;
    for (Map.Entry<String, Object> header : Marks.headersOf(properties).entrySet()) {
      atMost += 4 * (header.getKey().length() + 4 + atMost(header.getValue()));
    }
    if (atMost < most) {
      return true;
    }
    try {
      Frame frame = properties.toFrame(0, 0);
      return frame.size() <= most; // as the client itself finds out
    } catch (IOException | RuntimeException error) { // the application's own values: the client says so when it sends them
      return true;
    }
  }

  /** A quarter of the most bytes that a header's value takes; nested ones are encoded to know. */
  private static long atMost(Object value) {
    if (value instanceof String text) {
      return text.length() + 4L;
    }
    if (value instanceof LongString text) {
      return text.length() + 4L;
    }
    if (value instanceof byte[] octets) {
      return octets.length + 4L;
    }
    return value == null || value instanceof Number || value instanceof Boolean ? 8 : 1L << 30;
  }
}
