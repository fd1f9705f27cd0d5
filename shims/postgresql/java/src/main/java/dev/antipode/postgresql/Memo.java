package dev.antipode.postgresql;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/** What the texts of statements say, remembered: applications send the same ones again and again. Bounded, without long ones. */
final class Memo<T> {
  static final int MOST_KEPT = 2048;
  static final int LONGEST_KEPT = 4096;

  private final Function<String, T> judge;
  private final Map<String, T> known = new ConcurrentHashMap<>();

  /** {@code judge} says it of a text, and always the same; never null. */
  Memo(Function<String, T> judge) {
    this.judge = judge;
  }

  /** What this text says. */
  T of(String text) {
    if (text.length() >= LONGEST_KEPT) {
      return judge.apply(text);
    }
    T found = known.get(text);
    if (found == null) {
      found = judge.apply(text);
      if (known.size() >= MOST_KEPT) {
        known.clear();
      }
      known.put(text, found);
    }
    return found;
  }

  /** How many texts are kept. */
  int size() {
    return known.size();
  }
}
