package dev.antipode.internal.model;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * How names are spelled in the wire form: octet by octet, {@code A-Z a-z 0-9 -} as themselves, every other one as
 * {@code _} and two upper-case hexadecimal digits (WIRE-2).
 *
 * <p>Names are octets. As text they are UTF-8; an octet that is no UTF-8 stands as one of the lone surrogates U+DC80 to
 * U+DCFF, so that it survives being read and written (WIRE-38).
 */
public final class Names {
  /** Longest spelled key, in characters; a longer one travels in its hashed form (WIRE-18). */
  public static final int MAX_KEY = 1024;

  private static final char[] HEX = "0123456789ABCDEF".toCharArray();
  private static final byte[] HASHED_HEAD = {0, 'h', '-'};
  private static final int HASHED_DIGITS = 32;
  private static final int SURROGATE_OF_OCTETS = 0xDC00;

  private Names() {}

  /** Whether an octet or character stands for itself. */
  static boolean isPlain(int octet) {
    return octet >= 'a' && octet <= 'z' || octet >= 'A' && octet <= 'Z' || octet >= '0' && octet <= '9' || octet == '-';
  }

  /** Spells octets with the unreserved characters of the wire form. */
  public static String spell(byte[] octets) {
    StringBuilder spelled = new StringBuilder(octets.length + 16);
    for (byte octet : octets) {
      if (isPlain(octet)) {
        spelled.append((char) octet);
      } else {
        spelled.append('_').append(HEX[octet >> 4 & 15]).append(HEX[octet & 15]);
      }
    }
    return spelled.toString();
  }

  /** The octets that a spelled name stands for; the spelling must have been validated. */
  public static byte[] unspell(String spelled) {
    byte[] octets = new byte[spelled.length()];
    int length = 0;
    for (int place = 0; place < spelled.length(); place++) {
      char c = spelled.charAt(place);
      if (c == '_') {
        octets[length++] = (byte) (Character.digit(spelled.charAt(place + 1), 16) << 4
            | Character.digit(spelled.charAt(place + 2), 16));
        place += 2;
      } else {
        octets[length++] = (byte) c;
      }
    }
    return Arrays.copyOf(octets, length);
  }

  /** Spells a store's name, an epoch or a mark. */
  public static String spellName(String name) {
    return isAllPlain(name) ? name : spell(octets(name));
  }

  /** The name that a spelled store, epoch or mark stands for. */
  public static String unspellName(String spelled) {
    return spelled.indexOf('_') < 0 ? spelled : text(unspell(spelled));
  }

  /** Spells a key; one that would pass 1,024 characters is spelled in its hashed form (WIRE-18). */
  public static String spellKey(byte[] key) {
    String spelled = spell(key);
    return spelled.length() <= MAX_KEY ? spelled : spell(hashedKey(key));
  }

  /** How many octets a spelled name stands for. */
  static int octetsOf(String spelled) {
    int escapes = 0;
    for (int place = 0; place < spelled.length(); place++) {
      if (spelled.charAt(place) == '_') {
        escapes++;
      }
    }
    return spelled.length() - 2 * escapes;
  }

  /** Whether a text has only characters of spelled names, each spelled as it must be. */
  public static boolean isSpelled(String text) {
    return Scan.run(text, 0) == text.length();
  }

  /**
   * The hashed form of a key: the octet 0, {@code h-}, and 32 hexadecimal digits of its SHA-256 (WIRE-17). A key in that
   * form already stays as it is.
   */
  public static byte[] hashedKey(byte[] key) {
    if (isHashed(key)) {
      return key;
    }
    String digits = HexFormat.of().formatHex(sha256(key), 0, HASHED_DIGITS / 2);
    byte[] hashed = Arrays.copyOf(HASHED_HEAD, HASHED_HEAD.length + HASHED_DIGITS);
    System.arraycopy(digits.getBytes(StandardCharsets.US_ASCII), 0, hashed, HASHED_HEAD.length, HASHED_DIGITS);
    return hashed;
  }

  /** Whether a key is in its hashed form: a store that asks by key cannot ask for it. */
  public static boolean isHashed(byte[] key) {
    if (key.length != HASHED_HEAD.length + HASHED_DIGITS
        || !Arrays.equals(key, 0, HASHED_HEAD.length, HASHED_HEAD, 0, HASHED_HEAD.length)) {
      return false;
    }
    for (int place = HASHED_HEAD.length; place < key.length; place++) {
      byte octet = key[place];
      if (!(octet >= '0' && octet <= '9' || octet >= 'a' && octet <= 'f')) {
        return false;
      }
    }
    return true;
  }

  /** The SHA-256 of octets. */
  public static byte[] sha256(byte[] octets) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(octets);
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every Java platform has SHA-256", e);
    }
  }

  /**
   * The octets of a name: UTF-8, and those that a lone surrogate stands for.
   *
   * @throws IllegalArgumentException for a lone surrogate that stands for no octet
   */
  public static byte[] octets(String name) {
    if (isAscii(name)) {
      return name.getBytes(StandardCharsets.US_ASCII);
    }
    byte[] octets = new byte[name.length() * 3];
    int length = 0;
    for (int place = 0; place < name.length(); ) {
      int point = name.codePointAt(place);
      place += Character.charCount(point);
      if (point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE) {
        int octet = point - SURROGATE_OF_OCTETS;
        if (octet < 0x80 || octet > 0xFF) {
          throw new IllegalArgumentException("a name with a lone surrogate, which is no text");
        }
        octets[length++] = (byte) octet;
      } else {
        byte[] utf8 = Character.toString(point).getBytes(StandardCharsets.UTF_8);
        System.arraycopy(utf8, 0, octets, length, utf8.length);
        length += utf8.length;
      }
    }
    return Arrays.copyOf(octets, length);
  }

  /** How many octets a name has. */
  public static int octetCount(String name) {
    int count = 0;
    for (int place = 0; place < name.length(); place++) {
      char c = name.charAt(place);
      if (c < 0x80) {
        count++;
      } else if (c < 0x800) {
        count += 2;
      } else if (Character.isHighSurrogate(c) && place + 1 < name.length()
          && Character.isLowSurrogate(name.charAt(place + 1))) {
        count += 4;
        place++;
      } else {
        count += Character.isLowSurrogate(c) ? 1 : 3; // a lone one stands for an octet
      }
    }
    return count;
  }

  /** The name that octets stand for; those that are no UTF-8 as lone surrogates. */
  public static String text(byte[] octets) {
    CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder()
        .onMalformedInput(CodingErrorAction.REPORT)
        .onUnmappableCharacter(CodingErrorAction.REPORT);
    ByteBuffer in = ByteBuffer.wrap(octets);
    CharBuffer out = CharBuffer.allocate(octets.length);
    while (true) {
      CoderResult result = decoder.decode(in, out, true);
      if (!result.isError()) {
        return out.flip().toString();
      }
      for (int i = 0; i < result.length(); i++) {
        out.put((char) (SURROGATE_OF_OCTETS + (in.get() & 0xFF)));
      }
      decoder.reset();
    }
  }

  private static boolean isAllPlain(String name) {
    for (int place = 0; place < name.length(); place++) {
      if (!isPlain(name.charAt(place))) {
        return false;
      }
    }
    return true;
  }

  private static boolean isAscii(String name) {
    for (int place = 0; place < name.length(); place++) {
      if (name.charAt(place) >= 0x80) {
        return false;
      }
    }
    return true;
  }
}
