package dev.antipode.internal.model;

/** Looks at single fields of a text in the wire form. Every method takes time in proportion to what it passes over. */
final class Scan {
  private static final String MAX_COUNTER = "18446744073709551615";

  private Scan() {}

  /** Where the run of spelled characters ends that begins at {@code from}; an escape that is not right ends it. */
  static int run(String text, int from) {
    int place = from;
    while (place < text.length()) {
      char c = text.charAt(place);
      if (Names.isPlain(c)) {
        place++;
      } else if (c == '_' && isEscape(text, place)) {
        place += 3;
      } else {
        break;
      }
    }
    return place;
  }

  /** Whether an escape stands here, of an octet that must be escaped: an over-escape would be a second spelling. */
  private static boolean isEscape(String text, int place) {
    if (place + 2 >= text.length()) {
      return false;
    }
    int high = upperHex(text.charAt(place + 1));
    int low = upperHex(text.charAt(place + 2));
    return high >= 0 && low >= 0 && !Names.isPlain(high << 4 | low);
  }

  private static int upperHex(char c) {
    if (c >= '0' && c <= '9') {
      return c - '0';
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  }

  /** Whether a field is a counter: decimal, no sign, no leading zero, at most 2^64-1 (WIRE-9). */
  static boolean isCounter(String text, int from, int to) {
    int length = to - from;
    if (length < 1 || length > MAX_COUNTER.length() || length > 1 && text.charAt(from) == '0') {
      return false;
    }
    for (int place = from; place < to; place++) {
      char c = text.charAt(place);
      if (c < '0' || c > '9') {
        return false;
      }
    }
    return length < MAX_COUNTER.length() || text.substring(from, to).compareTo(MAX_COUNTER) <= 0;
  }
}
