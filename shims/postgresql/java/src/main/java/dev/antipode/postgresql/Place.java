package dev.antipode.postgresql;

import java.util.List;

/**
 * An answer to {@link Questions#PLACE}.
 *
 * @param timeline in force when it was read
 * @param flushed durable up to here
 * @param inserted written up to here, or to behind the next page's header
 * @param synchronous what the session says of commits now: {@code on}, {@code local}, {@code off}
 */
record Place(long timeline, long flushed, long inserted, String synchronous) {
  /** The place in a row; null where it is no answer. */
  static Place of(List<String[]> rows) {
    if (rows == null || rows.isEmpty() || rows.get(0).length != 4) {
      return null;
    }
    String[] row = rows.get(0);
    if (row[0] == null || row[1] == null || row[2] == null) {
      return null;
    }
    long timeline = Long.parseLong(row[0].substring(0, 8), 16);
    return new Place(timeline, Lsn.parse(row[1]), Lsn.parse(row[2]), row[3] == null ? "" : row[3]);
  }

  /** False at the start of a page: a record may only be flushed up to there, and be waited for in vain. */
  boolean endsRecord(long segment) {
    return Long.remainderUnsigned(flushed, Lsn.PAGE) != 0 || flushed == end(segment);
  }

  /** Whether all that was written before it was read is flushed, whoever wrote it and however it was committed. */
  boolean isAllFlushed(long segment) {
    return Long.compareUnsigned(flushed, end(segment)) >= 0;
  }

  /** The end of the last record that was written. */
  long end(long segment) {
    return Lsn.recordEnd(inserted, segment);
  }

  Place at(long position) {
    return new Place(timeline, position, inserted, synchronous);
  }
}
