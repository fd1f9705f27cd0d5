package dev.antipode.shim;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Consumer;

/**
 * The connections of a wrapped client whose servers have joined its store, when they were handed out or while the client held
 * them: each is met once (BAR-52, BAR-68). They are held weakly, and told apart as they say, which is by themselves.
 */
public final class MetConnections {
  private final Consumer<Object> meeting;
  private final Set<Object> met = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

  /** {@code meeting} lets the server join to which a connection leads; where it throws, the connection is met again. */
  public MetConnections(Consumer<Object> meeting) {
    this.meeting = meeting;
  }

  /** Let the server of a connection join, unless it has. */
  public void meet(Object connection) {
    if (!met.contains(connection)) {
      meeting.accept(connection);
      met.add(connection); // not before: else another thread would take its server for one that has joined
    }
  }

  /** Let the servers join to which these connections lead. */
  public void meetAll(Collection<?> connections) {
    List<Object> others = new ArrayList<>(0);
    synchronized (met) { // once for all: every barrier comes by
      for (Object each : connections) {
        if (!met.contains(each)) {
          others.add(each);
        }
      }
    }
    others.forEach(this::meet);
  }
}
