package dev.antipode.internal.base;

import java.util.Collection;
import java.util.Comparator;

/** Which known name somebody may have meant. */
public final class NearestName {
  private NearestName() {}

  /** The known name that differs least from this one, or null where none is near. */
  public static String of(String name, Collection<String> known) {
    return known.stream()
        .min(Comparator.comparingInt(each -> distance(name, each)))
        .filter(nearest -> 5 * distance(name, nearest) <= 2 * Math.max(name.length(), nearest.length()))
        .orElse(null);
  }

  /** How many characters must be put in, taken out or replaced to make one text of the other. */
  static int distance(String a, String b) {
    int[] row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(replaced, Math.min(row[j], row[j - 1]) + 1);
      }
    }
    return row[b.length()];
  }
}
