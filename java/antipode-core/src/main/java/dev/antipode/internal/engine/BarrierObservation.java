package dev.antipode.internal.engine;

import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.shim.Server;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;

/** What a scope's last barrier in dry-run has followed: it misses what a read behind it misses there (REC-27). */
public final class BarrierObservation {
  private static final Map<LineageScope, BarrierObservation> LAST = Collections.synchronizedMap(new WeakHashMap<>());

  private final String site;
  private final Map<String, Set<WriteId>> asked = new HashMap<>(); // by the servers' addresses

  private BarrierObservation(String site) {
    this.site = site;
  }

  /** Returns those of the last barrier in this scope; null where there are none. */
  public static BarrierObservation of(LineageScope scope) {
    return scope == null ? null : LAST.get(scope);
  }

  static void keep(Plan plan, String site) {
    if (plan.scope() == null) {
      return;
    }
    BarrierObservation looks = new BarrierObservation(site);
    for (StoreRequest each : plan.asked()) {
      each.servers().forEach(server ->
          looks.asked.computeIfAbsent(server.address(), first -> new HashSet<>()).addAll(each.ids()));
    }
    LAST.put(plan.scope(), looks);
  }

  /** Returns where the barrier was called. */
  public String site() {
    return site;
  }

  /** Returns whether it asked this server for all of these. */
  public boolean hold(Server server, Collection<WriteId> ids) {
    return asked.getOrDefault(server.address(), Set.of()).containsAll(ids);
  }
}
