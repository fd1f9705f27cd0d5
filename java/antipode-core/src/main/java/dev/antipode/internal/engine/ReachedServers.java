package dev.antipode.internal.engine;

import dev.antipode.shim.Server;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/**
 * The servers that nobody names: connections of wrapped clients reached them, and lead there still (BAR-62). It is looked at
 * like what names servers, every 5 s while barriers come, and never stands as a server itself: where no connection leads anywhere
 * it names none.
 */
public final class ReachedServers extends Discovery {
  private final Map<Place, Lead> known = new HashMap<>(); // its own lock
  private final ReferenceQueue<Object> forgotten = new ReferenceQueue<>();

  /** A connection, told from others by itself and held weakly. */
  private static final class Place extends WeakReference<Object> {
    private final int hash;

    Place(Object connection, ReferenceQueue<Object> forgotten) {
      super(connection, forgotten);
      this.hash = System.identityHashCode(connection);
    }

    @Override
    public int hashCode() {
      return hash;
    }

    @Override
    public boolean equals(Object other) {
      return this == other || other instanceof Place place && get() != null && get() == place.get();
    }
  }

  /** Where a connection leads since it was opened: not a record, for the same one anew is another. */
  private static final class Lead {
    private final Object target;
    private final Predicate<Object> leads;

    Lead(Object target, Predicate<Object> leads) {
      this.target = target;
      this.leads = leads;
    }

    boolean isLost(Object connection) {
      try {
        return connection == null || !leads.test(connection);
      } catch (RuntimeException error) { // nobody can tell
        return false;
      }
    }
  }

  /** Those of a store; {@code whose} says who asks them. */
  public ReachedServers(RegionStore store, SourceKey whose) {
    super(store, "its open connections", store, same -> List.of(), whose);
  }

  /** Notes that a connection leads there from now on; returns the server, which joins. */
  public Server reach(Object connection, Object target, Predicate<Object> leads) {
    String address = store().shim().address(target);
    synchronized (known) {
      for (Reference<?> over = forgotten.poll(); over != null; over = forgotten.poll()) {
        known.remove(over);
      }
      known.put(new Place(connection, forgotten), new Lead(target, leads));
      if (!named().containsKey(address)) {
        takeKnown();
      }
      return named().get(address);
    }
  }

  /** Under the lock: else a look from before would take a new server away. */
  private void takeKnown() {
    store().take(this, known.values().stream().map(lead -> lead.target).toList(), false);
  }

  @Override
  public boolean isKnown(long now) {
    return true;
  }

  /** Drops the connections that lead nowhere any more, and the servers to which none leads. */
  @Override
  public void ask() {
    Map<Place, Lead> all;
    synchronized (known) {
      all = new HashMap<>(known);
    }
    all.entrySet().removeIf(each -> !each.getValue().isLost(each.getKey().get()));
    synchronized (known) {
      all.forEach((place, lead) -> {
        if (known.get(place) == lead) { // else it has been made anew meanwhile
          known.remove(place);
        }
      });
      takeKnown();
    }
  }
}
