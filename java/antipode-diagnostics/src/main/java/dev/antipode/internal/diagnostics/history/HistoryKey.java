package dev.antipode.internal.diagnostics.history;

import dev.antipode.Key;

/** How a recorded history spells a key (HIST-34). */
final class HistoryKey {
  private static final int LONGEST = 1024;

  private HistoryKey() {}

  /** The key's text, with {@code \x} for octets of no character; the hashed form of one that is longer than 1,024 characters. */
  static String spelled(Key key) {
    String text = key.text(); // an octet of no character is a lone surrogate
    StringBuilder spelled = new StringBuilder(text.length());
    text.codePoints().forEach(point -> {
      if (point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE) {
        spelled.append("\\x").append(Integer.toHexString(point & 0xff));
      } else {
        spelled.appendCodePoint(point);
      }
    });
    return spelled.codePointCount(0, spelled.length()) <= LONGEST ? spelled.toString() : key.hashed().text();
  }
}
