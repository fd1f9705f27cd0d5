package dev.antipode.rabbitmq;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;

/**
 * What this process knows of one tap; it outlives the connections to it: the marks that have arrived, those that somebody
 * waits for, and up to where the stream has been read.
 */
final class TapMemory {
  private static final int MOST_WANTED = 10_000;
  private static final int PLACES = 1024;

  private final int remember;
  private final Marks seen;
  private final Set<String> wanted = new HashSet<>();
  private final Deque<Place> places = new ArrayDeque<>();
  private Place last;

  /**
   * A place in the stream. Offsets begin anew where a stream is declared anew, so a place is known by its message.
   *
   * @param offset where
   * @param looks what tells the message there from another one at the same offset of another stream
   */
  record Place(long offset, Object looks) {}

  TapMemory(int remember) {
    this.remember = remember;
    this.seen = new Marks(remember);
  }

  /** Whether a message with this mark has arrived; if not, its arrival will be told. */
  synchronized boolean want(String mark) {
    if (seen.contains(mark)) {
      wanted.remove(mark);
      return true;
    }
    if (wanted.size() >= MOST_WANTED) {
      wanted.clear(); // whoever waits asks again within the poll interval
    }
    wanted.add(mark);
    return false;
  }

  /** A message has arrived; true if somebody waits for it, who is to be told now. */
  synchronized boolean note(String mark) {
    seen.add(mark);
    return wanted.remove(mark);
  }

  /** How many marks are remembered. */
  int size() {
    return seen.size();
  }

  /** How many marks somebody waits for. */
  synchronized int wanted() {
    return wanted.size();
  }

  /** The offset of the last message that was read; -1 before the first. */
  synchronized long offset() {
    return last == null ? -1 : last.offset();
  }

  /** The message at this place has been read. */
  synchronized void read(Place place) {
    last = place;
    places.addLast(place);
    if (places.size() > PLACES) {
      places.removeFirst();
    }
  }

  /**
   * From which offset to read on, where the stream's last chunk begins at this place.
   *
   * <p>From the last message that was read, inclusive: {@link #isElsewhere} then says whether it is the same stream. Within
   * the last chunk, from its beginning. In a stream that is not the same, from the last messages that are remembered, or
   * its beginning.
   */
  synchronized long resume(Place chunk) {
    if (last != null && chunk.offset() > last.offset()) {
      return last.offset();
    }
    if (last != null && places.contains(chunk)) {
      return chunk.offset();
    }
    return beginAnew(chunk.offset());
  }

  /** Whether a message at the last offset that was read is another one than then: another stream. */
  synchronized boolean isElsewhere(Place place) {
    return last != null && last.offset() == place.offset() && !last.equals(place);
  }

  /** Forgets the place; what has arrived is not forgotten. Returns from where to read. */
  synchronized long beginAnew(long chunk) {
    last = null;
    places.clear();
    return Math.max(chunk - remember, 0);
  }
}
