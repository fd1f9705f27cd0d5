package dev.antipode.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * In-band marks: one hash in the store itself, epoch to the greatest position that lies before this record (spec EPOCH).
 *
 * <p>A field is an epoch (16 hex digits), its value {@code <position> <running number>}; the field {@code clock} holds
 * {@code <last number> <milliseconds of the last mark> <epoch of it>}. The same record and script in every language.
 */
final class Marks {
  /** The option that names the key of the hash. */
  static final String OPTION = "marks_key";

  /** The key of the hash, unless an option says otherwise. */
  static final String DEFAULT_KEY = "antipode:epochs";

  /** So many epochs are kept; beyond, those with the smallest running numbers go. */
  static final int MOST = 1000;

  /** At most one mark a store in so many milliseconds, whoever writes it. Tests make it shorter. */
  static volatile int periodMillis = 1000;

  /** What marks: answers a word, a number of ms to wait, and the epoch. */
  static final String SCRIPT = resource("mark.lua");

  private Marks() {}

  /** The position (unsigned) in a field's value; null where it is absent or no mark. */
  static Long positionOf(Object value) {
    String[] words = value instanceof byte[] octets ? Replication.text(octets).split(" ", -1) : new String[0];
    if (words.length != 2 || words[0].isEmpty()) {
      return null;
    }
    try {
      return Long.parseUnsignedLong(words[0]);
    } catch (NumberFormatException error) {
      return null;
    }
  }

  /** A script that comes with the shim. */
  static String resource(String name) {
    try (InputStream found = Marks.class.getResourceAsStream(name)) {
      return new String(found.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
