package dev.antipode.internal.model;

/**
 * Texts of plain positions, the commonest lineages: each store stands once, with one position, spelled without an escape
 * and in canonical order, and nothing else. A position is raised in such a text without opening it.
 */
public final class PlainText {
  /** Longest such text: it cannot have more entries than a lineage may (WIRE-12). */
  private static final int MOST = 2048;

  private PlainText() {}

  /** Whether a text is a canonical lineage of plain positions; false says nothing about other lineages. */
  public static boolean isPlain(String text) {
    int length = text.length();
    if (length == 0 || length > MOST || text.charAt(0) != '1') {
      return false;
    }
    int before = -1; // where the section before begins
    int place = 1;
    while (place < length) {
      if (text.charAt(place) != '~') {
        return false;
      }
      int section = place + 1;
      int storeEnd = plainRun(text, section);
      if (storeEnd == section || storeEnd - section > WireForm.MAX_STORE || !text.startsWith("..", storeEnd)
          || before >= 0 && !follows(text, before, section, storeEnd)) {
        return false;
      }
      int epoch = storeEnd + 2;
      int epochEnd = plainRun(text, epoch);
      if (epochEnd == epoch || epochEnd - epoch > WireForm.MAX_EPOCH || epochEnd == length
          || text.charAt(epochEnd) != '.') {
        return false;
      }
      int end = digits(text, epochEnd + 1);
      if (!Scan.isCounter(text, epochEnd + 1, end)) {
        return false;
      }
      before = section;
      place = end;
    }
    return true;
  }

  private static int plainRun(String text, int from) {
    int place = from;
    while (place < text.length() && Names.isPlain(text.charAt(place))) {
      place++;
    }
    return place;
  }

  private static int digits(String text, int from) {
    int place = from;
    while (place < text.length() && text.charAt(place) >= '0' && text.charAt(place) <= '9') {
      place++;
    }
    return place;
  }

  /** Whether the section here comes after the one before, and is of another store. */
  private static boolean follows(String text, int before, int section, int storeEnd) {
    for (int place = section; place <= storeEnd; place++) {
      int order = text.charAt(place) - text.charAt(before + place - section);
      if (order != 0) {
        return order > 0;
      }
    }
    return false; // the same store: whether that is malformed is for others to say
  }

  /** Where the counter of this position begins in a plain text, or -1 where it has none of this store and epoch. */
  public static int counterOf(String text, String spelledStore, String spelledEpoch) {
    String head = "~" + spelledStore + ".." + spelledEpoch + ".";
    int at = text.indexOf(head);
    return at < 0 ? -1 : at + head.length();
  }

  /** The counter that begins here. */
  public static long counterAt(String text, int from) {
    return Long.parseUnsignedLong(text, from, end(text, from), 10);
  }

  /** Whether another counter leaves the text one of these: not too long. */
  public static boolean mayBeRaised(String text) {
    return text.length() <= MOST - 20;
  }

  /** The text with another counter in the place of the one that begins here. */
  public static String raised(String text, int from, long counter) {
    return text.substring(0, from) + Long.toUnsignedString(counter) + text.substring(end(text, from));
  }

  private static int end(String text, int from) {
    int end = text.indexOf('~', from);
    return end < 0 ? text.length() : end;
  }

  /** The section of a store in a plain text, or null. */
  public static String section(String text, String spelledStore) {
    String head = "~" + spelledStore + "..";
    int at = text.indexOf(head);
    return at < 0 ? null : text.substring(at + 1, end(text, at + 1));
  }
}
