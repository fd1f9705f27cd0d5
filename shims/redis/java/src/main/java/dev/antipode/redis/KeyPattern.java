package dev.antipode.redis;

import java.nio.charset.StandardCharsets;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/**
 * Patterns of keys as {@code KEYS} takes them: {@code *}, {@code ?}, {@code [abc]}, {@code [^a]}, {@code [a-z]}, and
 * {@code \} before any. Keys are octets: each is one character of Latin 1 here.
 */
final class KeyPattern {
  private final String pattern;
  private final StringBuilder parts = new StringBuilder();
  private int place;

  private KeyPattern(byte[] pattern) {
    this.pattern = new String(pattern, StandardCharsets.ISO_8859_1);
  }

  /** Whether a key matches. */
  static Predicate<byte[]> of(byte[] pattern) {
    Pattern matcher = new KeyPattern(pattern).compiled();
    return key -> matcher.matcher(new String(key, StandardCharsets.ISO_8859_1)).matches();
  }

  private Pattern compiled() {
    while (place < pattern.length()) {
      char octet = pattern.charAt(place);
      place++;
      int end = octet == '[' ? endOfSet() : -1;
      if (octet == '*') {
        parts.append(".*");
      } else if (octet == '?') {
        parts.append('.');
      } else if (end > 0) {
        boolean isNegated = pattern.charAt(place) == '^';
        addSet(pattern.substring(isNegated ? place + 1 : place, end), isNegated);
        place = end + 1;
      } else {
        if (octet == '\\' && place < pattern.length()) {
          octet = pattern.charAt(place);
          place++;
        }
        parts.append(exactly(octet));
      }
    }
    return Pattern.compile(parts.toString(), Pattern.DOTALL);
  }

  /** Where a set that begins here ends; -1 where it does not, or is empty. */
  private int endOfSet() {
    int first = place + (pattern.startsWith("^", place) ? 1 : 0);
    for (int at = place; at < pattern.length(); at++) {
      if (pattern.charAt(at) == '\\') {
        at++;
      } else if (pattern.charAt(at) == ']') {
        return at > first ? at : -1;
      }
    }
    return -1;
  }

  private void addSet(String inside, boolean isNegated) {
    parts.append(isNegated ? "[^" : "[");
    for (int at = 0; at < inside.length(); at++) {
      if (inside.charAt(at) == '\\' && at + 1 < inside.length()) {
        at++;
      }
      char low = inside.charAt(at);
      if (at + 2 < inside.length() && inside.charAt(at + 1) == '-') {
        char high = inside.charAt(at + 2);
        parts.append(exactly((char) Math.min(low, high))).append('-').append(exactly((char) Math.max(low, high)));
        at += 2;
      } else {
        parts.append(exactly(low));
      }
    }
    parts.append(']');
  }

  private static String exactly(char octet) {
    return "\\x%02x".formatted((int) octet);
  }
}
