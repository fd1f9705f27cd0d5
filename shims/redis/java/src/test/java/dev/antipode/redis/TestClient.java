package dev.antipode.redis;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A wrapped client of any kind, as the tests drive it. Replies: text for octets, numbers, lists (maps as names and values
 * in turn), null; errors are thrown, or among the replies of several commands.
 */
interface TestClient extends AutoCloseable {
  /** One command. */
  Object call(Object... words);

  /** Commands that are sent together. */
  Batch batch();

  /** A transaction on a connection of its own. */
  Transaction transaction();

  /** What the client throws for a server's error. */
  Class<? extends Exception> serverError();

  /** What the client throws where no reply comes. */
  Class<? extends Exception> noReply();

  @Override
  void close();

  /** Several commands at once. */
  interface Batch extends AutoCloseable {
    Batch add(Object... words);

    /** Sends them; their replies. */
    List<Object> send();

    @Override
    void close();
  }

  /** WATCH, MULTI, EXEC. */
  interface Transaction extends AutoCloseable {
    void watch(String key);

    /** A command between WATCH and MULTI. */
    Object call(Object... words);

    void multi();

    void add(Object... words);

    /** The replies; null where a watched key was changed. */
    List<Object> exec();

    void discard();

    @Override
    void close();
  }

  /** The words as octets, without the name. */
  static byte[][] arguments(Object... words) {
    byte[][] octets = new byte[words.length - 1][];
    for (int place = 1; place < words.length; place++) {
      octets[place - 1] = words[place] instanceof byte[] given
          ? given
          : String.valueOf(words[place]).getBytes(StandardCharsets.UTF_8);
    }
    return octets;
  }

  /** A reply with text for octets. */
  static Object readable(Object reply) {
    if (reply instanceof byte[] octets) {
      return new String(octets, StandardCharsets.ISO_8859_1);
    }
    if (reply instanceof List<?> list) {
      List<Object> each = new ArrayList<>();
      for (Object one : list) {
        if (one instanceof java.util.Map.Entry<?, ?> pair) {
          each.add(readable(pair.getKey()));
          each.add(readable(pair.getValue()));
        } else {
          each.add(readable(one));
        }
      }
      return each;
    }
    return reply;
  }
}
