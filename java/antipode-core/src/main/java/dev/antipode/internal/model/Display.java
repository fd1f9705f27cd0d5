package dev.antipode.internal.model;

import java.util.Collection;
import java.util.stream.Collectors;

/** Names from outside, as people are shown them. */
public final class Display {
  private static final int LONGEST = 64;
  private static final int MOST_NAMES = 5;

  private Display() {}

  /** Text from outside as it may stand in a log line or error: escaped, and cut at 64 characters (OBS-12). */
  public static String shown(String text) {
    StringBuilder shown = new StringBuilder();
    text.chars().limit(LONGEST).forEach(c -> {
      if (c >= ' ' && c < 127) {
        shown.append((char) c);
      } else {
        shown.append(String.format("\\u%04x", c));
      }
    });
    return text.length() > LONGEST ? shown + "..." : shown.toString();
  }

  /** Several of them: at most five, and how many more there are (OBS-12). */
  public static String shown(Collection<String> texts) {
    String some = texts.stream().limit(MOST_NAMES).map(Display::shown).collect(Collectors.joining(", "));
    return texts.size() > MOST_NAMES ? some + " and " + (texts.size() - MOST_NAMES) + " more" : some;
  }
}
