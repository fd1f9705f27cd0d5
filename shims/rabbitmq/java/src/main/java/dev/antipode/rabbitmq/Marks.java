package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.LongString;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Marks: what tells one tracked message from every other; and a memory of the last so many that have arrived. */
final class Marks {
  /** The tracked message's own mark, where the application has given it a {@code message_id}, which it may use again. */
  static final String HEADER = "antipode-mark";

  private final Map<String, Boolean> seen;

  Marks(int most) {
    seen = new LinkedHashMap<>() {
      @Override
      protected boolean removeEldestEntry(Map.Entry<String, Boolean> eldest) {
        return size() > most;
      }
    };
  }

  /** A message with this mark has arrived; once more is the same. */
  synchronized void add(String mark) {
    seen.put(mark, true);
  }

  synchronized boolean contains(String mark) {
    return seen.containsKey(mark);
  }

  synchronized int size() {
    return seen.size();
  }

  /** A message's headers; empty where it has none. */
  static Map<String, Object> headersOf(AMQP.BasicProperties properties) {
    Map<String, Object> headers = properties == null ? null : properties.getHeaders();
    return headers == null ? Map.of() : headers;
  }

  /** The mark of a message that may have been tracked: its own header, else its {@code message_id}; null without. */
  static String of(AMQP.BasicProperties properties) {
    Object mark = headersOf(properties).get(HEADER);
    if (mark == null) {
      mark = properties == null ? null : properties.getMessageId();
    }
    return mark instanceof byte[] || mark instanceof String || mark instanceof LongString ? text(mark) : null;
  }

  /** A value of a header that is a text, or octets. */
  static String text(Object value) {
    return value instanceof byte[] octets ? new String(octets, StandardCharsets.UTF_8) : value.toString();
  }
}
