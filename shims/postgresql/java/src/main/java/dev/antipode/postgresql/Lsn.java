package dev.antipode.postgresql;

/** Places in the log, as unsigned numbers and as PostgreSQL writes them. */
final class Lsn {
  static final int PAGE = 8192;

  private static final int HEADER = 24;
  private static final int LONG_HEADER = 40; // of the first page of a segment

  private Lsn() {}

  /** {@code 1/2A} as a number. */
  static long parse(String text) {
    int slash = text.indexOf('/');
    return (Long.parseLong(text.substring(0, slash), 16) << 32) + Long.parseLong(text.substring(slash + 1), 16);
  }

  /** A number as {@code 1/2A}. */
  static String text(long number) {
    return Long.toHexString(number >>> 32).toUpperCase(java.util.Locale.ROOT) + "/"
        + Long.toHexString(number & 0xFFFFFFFFL).toUpperCase(java.util.Locale.ROOT);
  }

  /**
   * The end of the last record before an insert position, which may already lie behind the next page's header.
   *
   * @param segment how long a segment of the log is; 0 where that is not known yet
   */
  static long recordEnd(long inserted, long segment) {
    if (segment != 0 && Long.remainderUnsigned(inserted, segment) == LONG_HEADER) {
      return inserted - LONG_HEADER;
    }
    return Long.remainderUnsigned(inserted, PAGE) == HEADER ? inserted - HEADER : inserted;
  }
}
