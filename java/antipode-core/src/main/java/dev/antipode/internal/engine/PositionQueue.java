package dev.antipode.internal.engine;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.PriorityQueue;

/** The needs for positions of one epoch at one server, least first. Those that were given up are passed over. */
final class PositionQueue implements Iterable<PendingWait> {
  private static final int SWEEP_FROM = 1024;

  private record Place(long counter, long number, PendingWait need) {}

  private static final Comparator<Place> LEAST_FIRST =
      (one, other) -> {
        int order = Long.compareUnsigned(one.counter, other.counter);
        return order != 0 ? order : Long.compare(one.number, other.number); // equal ones in the order of arrival
      };

  private PriorityQueue<Place> heap = new PriorityQueue<>(LEAST_FIRST);
  private long numbers;
  private int sweepAt = SWEEP_FROM;

  /** One more need. */
  void push(PendingWait need) {
    if (heap.size() >= sweepAt) { // behind one that waits long, thousands may have been given up
      heap.removeIf(place -> place.need.isDone());
      sweepAt = Math.max(SWEEP_FROM, 2 * heap.size());
    }
    heap.add(new Place(need.counter, numbers++, need));
  }

  /** The need for the least position, or null. */
  PendingWait first() {
    while (!heap.isEmpty() && heap.peek().need.isDone()) {
      heap.remove();
    }
    return heap.isEmpty() ? null : heap.peek().need;
  }

  /** Takes out, in order, the needs for positions up to {@code counter}. */
  List<PendingWait> reached(long counter) {
    List<PendingWait> taken = new ArrayList<>();
    while (!heap.isEmpty() && Long.compareUnsigned(heap.peek().counter, counter) <= 0) {
      PendingWait need = heap.remove().need;
      if (!need.isDone()) {
        taken.add(need);
      }
    }
    return taken;
  }

  /** Takes out the needs for positions from {@code counter} on. */
  List<PendingWait> fromCounter(long counter) {
    List<PendingWait> taken = new ArrayList<>();
    PriorityQueue<Place> kept = new PriorityQueue<>(LEAST_FIRST);
    for (Place place : heap) {
      if (Long.compareUnsigned(place.counter, counter) < 0) {
        kept.add(place);
      } else if (!place.need.isDone()) {
        taken.add(place.need);
      }
    }
    heap = kept;
    return taken;
  }

  /** The needs as they are now, in no particular order. */
  @Override
  public Iterator<PendingWait> iterator() {
    List<PendingWait> needs = new ArrayList<>(heap.size());
    for (Place place : heap) {
      if (!place.need.isDone()) {
        needs.add(place.need);
      }
    }
    return needs.iterator();
  }
}
