package dev.antipode.memory;

import dev.antipode.Key;
import dev.antipode.Version;

/**
 * One record of the log: a write, or a mark of what lies before it.
 *
 * @param due when it was written at the server that it is fetched from, {@code Ticks}
 * @param epoch the history that it is part of
 * @param counter its place in it
 * @param key the object; empty for a mark
 * @param value what was written; null deletes
 * @param lineage what rests beside the value
 * @param version what the write is called: its own place in the log, or its object's version
 * @param mark an epoch and the greatest position of it before this record; null for a write
 */
record Entry(
    long due, String epoch, long counter, Key key, byte[] value, String lineage, Version version, Mark mark) {

  /** An epoch, and the greatest position of it that lies before the mark (EPOCH-16). */
  record Mark(String epoch, long counter) {}

  /** The same record at a server that got it then. */
  Entry at(long time) {
    return new Entry(time, epoch, counter, key, value, lineage, version, mark);
  }
}
