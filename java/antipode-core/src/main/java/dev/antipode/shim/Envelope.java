package dev.antipode.shim;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The envelope: a value and the lineage beside it in one string of octets, for stores without a place of their own for it
 * (SHIM-34 to SHIM-37).
 */
public final class Envelope {
  /** So long is a lineage's text at most; the wire's own limit is far below it. */
  public static final int MOST_BYTES = 0xFFFF;

  private static final byte[] BEGIN = {(byte) 0xF5, 'A', 'E'}; // no UTF-8 text begins so
  private static final byte FORM = '1';
  private static final int HEAD = BEGIN.length + 3;

  private Envelope() {}

  /**
   * What octets from a store were.
   *
   * @param value the application's; where the envelope is broken all octets, as they stand: a value is never lost
   * @param text the lineage's text, not judged yet; null for a value without envelope, or with a broken one
   * @param fault why an envelope could not be opened; empty where nothing is wrong
   */
  public record OpenedEnvelope(byte[] value, String text, String fault) {}

  /** Whether octets begin as an envelope does. */
  public static boolean isOne(byte[] octets) {
    return octets.length >= BEGIN.length && Arrays.equals(octets, 0, BEGIN.length, BEGIN, 0, BEGIN.length);
  }

  /**
   * A value with a lineage's text in one; without a lineage (an empty text) the value as it is, unless it looks like an
   * envelope.
   *
   * @throws IllegalArgumentException for a text that is not ASCII or too long
   */
  public static byte[] close(byte[] value, String text) {
    if (text.isEmpty() && !isOne(value)) {
      return value;
    }
    if (text.length() > MOST_BYTES) {
      throw new IllegalArgumentException("a lineage of " + text.length() + " bytes does not fit into an envelope");
    }
    if (text.chars().anyMatch(c -> c >= 0x80)) {
      throw new IllegalArgumentException("a lineage's text is ASCII");
    }
    byte[] closed = new byte[HEAD + text.length() + value.length];
    System.arraycopy(BEGIN, 0, closed, 0, BEGIN.length);
    closed[BEGIN.length] = FORM;
    closed[BEGIN.length + 1] = (byte) (text.length() >> 8);
    closed[BEGIN.length + 2] = (byte) text.length();
    System.arraycopy(text.getBytes(StandardCharsets.US_ASCII), 0, closed, HEAD, text.length());
    System.arraycopy(value, 0, closed, HEAD + text.length(), value.length);
    return closed;
  }

  /** What octets are; never throws. */
  public static OpenedEnvelope open(byte[] octets) {
    if (!isOne(octets)) {
      return new OpenedEnvelope(octets, null, "");
    }
    if (octets.length <= BEGIN.length || octets[BEGIN.length] != FORM) {
      return new OpenedEnvelope(octets, null, "an envelope of a form that this version does not know");
    }
    int length = octets.length < HEAD ? MOST_BYTES : (octets[HEAD - 2] & 0xFF) << 8 | octets[HEAD - 1] & 0xFF;
    int end = HEAD + length;
    if (octets.length < end) {
      return new OpenedEnvelope(octets, null, "an envelope that is cut off");
    }
    String text = new String(octets, HEAD, length, StandardCharsets.ISO_8859_1);
    return new OpenedEnvelope(Arrays.copyOfRange(octets, end, octets.length), text, "");
  }
}
