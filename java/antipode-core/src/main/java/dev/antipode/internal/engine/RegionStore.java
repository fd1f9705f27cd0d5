package dev.antipode.internal.engine;

import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.Discovery.SourceKey;
import dev.antipode.internal.store.Ages;
import dev.antipode.internal.store.Registry;
import dev.antipode.internal.store.StoreFactory;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.WaitOnRead;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** A store with its servers, as wraps, registrations and discovery name them (BAR-22, BAR-52 to BAR-54). */
public final class RegionStore extends RegisteredStore {
  private static final long LOOK_AGAIN = TimeUnit.MILLISECONDS.toNanos(500); // while barriers wait: whether servers leave

  // The lock guards the maps; the snapshots are what barriers read.
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<String, ServerEngine> own = new LinkedHashMap<>(); // of wrapped clients
  private final Map<String, ServerEngine> region = new LinkedHashMap<>(); // listed, and of wraps without a list
  private final Map<String, ServerEngine> aside = new LinkedHashMap<>(); // no barrier asks them
  private final Map<SourceKey, ReachedServers> ofConnections = new EnumMap<>(SourceKey.class);
  private final Map<String, Long> gone = new HashMap<>(); // when discovery took an address away
  private volatile List<ServerEngine> ownServers = List.of();
  private volatile List<ServerEngine> regionServers = List.of();
  private volatile List<Discovery> discoveries = List.of();
  private volatile int generation;
  private volatile long lookedAt = Ticks.LONG_AGO;
  private final Ages ages = new Ages();

  /** Makes the stores of this process. */
  public static final class Factory implements StoreFactory {
    @Override
    public RegisteredStore make(String name, Shim shim, StoreOptions options) {
      return new RegionStore(name, shim, options);
    }
  }

  private RegionStore(String name, Shim shim, StoreOptions options) {
    super(name, shim, options);
  }

  /** Return a registered store as the engine made it. */
  public static RegionStore of(RegisteredStore store) {
    return (RegionStore) store;
  }

  /** When its positions were first seen at any of its servers. */
  Ages ages() {
    return ages;
  }

  @Override
  protected List<WriteId> required(Reading reading, LineageScope scope, boolean waits) {
    return WaitOnRead.required(this, reading, scope, waits);
  }

  @Override
  protected boolean awaitRead(Server server, Duration timeout, Reading reading, LineageScope scope, boolean waits) {
    return WaitOnRead.waitFirst(server, timeout, reading, scope, waits);
  }

  @Override
  protected void changed() {
    lock.lock();
    try {
      generation++;
    } finally {
      lock.unlock();
    }
  }

  @Override
  public Server useServer(StoreOptions wrap, Object target, String address) {
    boolean isAlone = namesServers(wrap);
    if (isNamed(target, address, isAlone ? SourceKey.NAMED_ALONE : SourceKey.NAMED)) {
      return add(aside, target, address); // for reads that wait
    }
    Server server = add(own, target, address);
    if (!isAlone) {
      add(region, target, address);
    }
    return server;
  }

  @Override
  public Server useServerAlone(Object target) {
    return add(own, target, shim().address(target));
  }

  /** Return whether somebody names the servers that a target leads to, who is asked from now on. */
  private boolean isNamed(Object target, String address, SourceKey whose) {
    Callable<? extends Collection<?>> asking = shim().naming(target);
    if (asking == null) {
      return false;
    }
    discover(address, asking, whose);
    return true;
  }

  private boolean namesServers(StoreOptions said) {
    return said.replicas() != null || said.listing() != null || Registry.replicasInEnvironment(name()) != null;
  }

  @Override
  public void listReplicas(StoreOptions said, List<String> fromEnvironment) {
    List<?> servers = said.replicas();
    if (servers == null && said.listing() == null) {
      servers = fromEnvironment;
    }
    if (servers != null) {
      for (Object target : servers) {
        String address = shim().address(target);
        if (!isNamed(target, address, SourceKey.LISTED)) {
          add(region, target, address);
        }
      }
    }
    if (said.listing() != null) {
      join(new Discovery(this, "replicas(…)", said.listing(), listing -> said.listing().get(), SourceKey.LISTED)).ask();
    }
  }

  @Override
  public Discovery expectServer(
      StoreOptions wrap, String words, Object client, Function<Object, ? extends Collection<?>> asking) {
    return expectServer(wrap, words, client, asking, same -> null);
  }

  @Override
  public Discovery expectServer(
      StoreOptions wrap,
      String words,
      Object client,
      Function<Object, ? extends Collection<?>> asking,
      Function<Object, ?> looking) {
    SourceKey whose = namesServers(wrap) ? SourceKey.CLIENTS_ALONE : SourceKey.CLIENTS;
    return join(new Discovery(this, words, client, asking, looking, whose));
  }

  @Override
  public Server reach(StoreOptions wrap, Object target, Object connection, Predicate<Object> leads) {
    SourceKey whose = namesServers(wrap) ? SourceKey.NAMED_ALONE : SourceKey.NAMED;
    ReachedServers source;
    lock.lock();
    try {
      source = ofConnections.computeIfAbsent(whose, first -> (ReachedServers) join(new ReachedServers(this, first)));
    } finally {
      lock.unlock();
    }
    return source.reach(connection, target, leads);
  }

  /** Has somebody name servers, now and again every 5 s (BAR-53); wraps that say the same words share one question. */
  private Discovery discover(String words, Callable<? extends Collection<?>> asking, SourceKey whose) {
    Discovery asks = new Discovery(this, words, this, servers -> asked(asking), whose);
    lock.lock();
    try {
      for (Discovery each : discoveries) {
        if (each.whose() == whose && each.address().equals(words)) {
          return each;
        }
      }
      join(asks);
    } finally {
      lock.unlock();
    }
    asks.refresh(); // what it names now may be taken away before the first barrier
    return asks;
  }

  private static Collection<?> asked(Callable<? extends Collection<?>> asking) {
    try {
      return asking.call();
    } catch (RuntimeException error) {
      throw error;
    } catch (Exception error) {
      throw new IllegalStateException(error.getMessage(), error);
    }
  }

  private Discovery join(Discovery asks) {
    lock.lock();
    try {
      List<Discovery> all = new ArrayList<>(discoveries);
      all.removeIf(Discovery::isOver);
      all.add(asks);
      discoveries = List.copyOf(all);
      generation++;
      return asks;
    } finally {
      lock.unlock();
    }
  }

  /** What the shim says of a server that a source names. */
  private record SourceAnswer(Object target, String address, Callable<? extends Collection<?>> asking) {}

  /** Takes the servers that a source names now, by address; with {@code isMore} those before stay, else they go (BAR-54). */
  void take(Discovery source, Collection<?> targets, boolean isMore) {
    List<SourceAnswer> all = targets.stream() // without the lock: a shim may take its time, and barriers need the lock
        .map(target -> new SourceAnswer(target, shim().address(target), shim().naming(target)))
        .toList();
    lock.lock();
    try {
      Map<String, ServerEngine> before = source.named(); // under the lock: what another answer adds meanwhile stays
      Map<String, ServerEngine> named = new LinkedHashMap<>(isMore ? before : Map.of());
      for (SourceAnswer each : all) {
        ServerEngine known =
            each.asking != null ? discover(each.address, each.asking, source.whose().again()) : at(each.address);
        named.put(each.address, known != null ? known : new ServerEngine(this, each.address, each.target));
      }
      before.keySet().stream()
          .filter(address -> !named.containsKey(address) && !(source instanceof ReachedServers && isNamedBeside(source, address)))
          .forEach(away -> gone.put(away, Ticks.now()));
      source.named(named); // before the generation grows: who reads that one sees these servers
      if (!source.isKnown(Ticks.now()) || !before.keySet().equals(named.keySet())) {
        generation++;
      }
    } finally {
      lock.unlock();
    }
  }

  /** Have those that may take servers away asked, where it is time; return the generation. Barriers wait meanwhile (BAR-65). */
  int lookForLeaving(long now) {
    if (now - lookedAt >= LOOK_AGAIN) {
      lookedAt = now;
      for (Discovery each : discoveries) {
        try {
          if (!each.named().isEmpty() && (each.isDue(now) || !each.isKnown(now))) {
            each.refresh();
          }
        } catch (RuntimeException error) { // the application's own code says where a client leads: a barrier throws it
          continue;
        }
      }
    }
    return generation;
  }

  /** Return whether a server is among those of a reach, or is asked who they are. */
  boolean isNamed(Server server, boolean ownAlone) {
    lock.lock();
    try {
      Set<String> named = addresses(ownAlone);
      return discoveries.contains(server)
          || at(server.address()) == server && (named.isEmpty() ? addresses(!ownAlone) : named).contains(server.address());
    } finally {
      lock.unlock();
    }
  }

  private Set<String> addresses(boolean ownAlone) {
    Set<String> found = new HashSet<>((ownAlone ? own : region).keySet());
    discoveries.stream()
        .filter(each -> ownAlone ? each.whose().isOwn() : each.whose().isOfRegion())
        .forEach(each -> found.addAll(each.named().keySet()));
    return found;
  }

  /** Return whether a server is judged without this source wherever it is with it. */
  private boolean isNamedBeside(Discovery source, String address) {
    return isNamedBeside(source, address, own, SourceKey::isOwn)
        && (!source.whose().isOfRegion() || isNamedBeside(source, address, region, SourceKey::isOfRegion));
  }

  private boolean isNamedBeside(
      Discovery source, String address, Map<String, ServerEngine> group, Predicate<SourceKey> counts) {
    return group.containsKey(address)
        || discoveries.stream().anyMatch(
            each -> each != source && counts.test(each.whose()) && each.named().containsKey(address));
  }

  /** Return the addresses that discovery took away within {@code left_server} and that are not judged (BAR-54). */
  List<String> gone(boolean ownAlone) {
    List<String> left;
    lock.lock();
    try {
      if (gone.isEmpty()) {
        return List.of();
      }
      long since = Ticks.now() - ProcessSettings.inForce().leftServer().toNanos();
      gone.values().removeIf(at -> at <= since);
      left = gone.keySet().stream().sorted().toList();
    } finally {
      lock.unlock();
    }
    Set<String> judged = servers(ownAlone).stream().map(ServerEngine::address).collect(Collectors.toSet());
    return left.stream().filter(address -> !judged.contains(address)).toList();
  }

  private ServerEngine add(Map<String, ServerEngine> group, Object target, String address) {
    lock.lock();
    try {
      ServerEngine server = at(address);
      if (server == null) {
        server = new ServerEngine(this, address, target);
      }
      if (group.putIfAbsent(address, server) == null) {
        serversChanged();
      }
      return server;
    } finally {
      lock.unlock();
    }
  }

  private ServerEngine at(String address) {
    ServerEngine server = own.getOrDefault(address, region.getOrDefault(address, aside.get(address)));
    for (Discovery each : discoveries) {
      server = server != null ? server : each.named().get(address);
    }
    return server;
  }

  private void serversChanged() {
    ownServers = List.copyOf(own.values());
    regionServers = List.copyOf(region.values());
    generation++; // written under the lock alone
  }

  /** Where somebody else has still to name some, a {@link Discovery} stands for them: who waits there waits for that, too. */
  @Override
  public List<ServerEngine> servers(boolean ownAlone) {
    discoveries.forEach(Discovery::meetHeld); // first: what joins is named with the others
    List<ServerEngine> found = named(ownAlone);
    return found.isEmpty() ? named(!ownAlone) : found;
  }

  private List<ServerEngine> named(boolean ownAlone) {
    List<ServerEngine> servers = ownAlone ? ownServers : regionServers;
    if (discoveries.isEmpty()) {
      return servers;
    }
    Set<ServerEngine> found = new LinkedHashSet<>(servers);
    long now = Ticks.now();
    for (Discovery each : discoveries) {
      boolean counts = ownAlone ? each.whose().isOwn() : each.whose().isOfRegion();
      if (each.isOver() || !counts && each.whose().isOnce()) {
        continue;
      }
      if (each.isDue(now)) {
        each.refresh(); // also where it does not count: what it takes away is to be named
      }
      if (!counts) {
        continue;
      }
      if (each.isKnown(now)) {
        each.named().values().stream().filter(one -> !(one instanceof Discovery)).forEach(found::add); // those are asked, too
      } else {
        found.add(each);
      }
    }
    return List.copyOf(found);
  }

  /** Return whether what names the servers is to be asked again, or its answer does not stand any more. */
  boolean isDiscoveryDue(long now) {
    for (Discovery each : discoveries) {
      boolean counts = each.whose().isOfRegion();
      each.meetHeld(); // who joins by that is another generation's
      if (each.isOver() || !counts && each.whose().isOnce()) {
        continue;
      }
      if (counts && !each.isKnown(now) || each.isDue(now)) {
        return true;
      }
    }
    return false;
  }

  /** Grows when the set of servers changes. */
  int generation() {
    return generation;
  }

  @Override
  public ServerEngine serverAt(String address) {
    lock.lock();
    try {
      return at(address);
    } finally {
      lock.unlock();
    }
  }

  /** Gives its servers up, too: their threads end at once, with their channels (tests). */
  @Override
  public void forget() {
    Set<ServerEngine> all = new LinkedHashSet<>(ownServers);
    all.addAll(regionServers);
    lock.lock();
    try {
      all.addAll(aside.values());
    } finally {
      lock.unlock();
    }
    discoveries.forEach(each -> all.addAll(each.named().values()));
    all.addAll(discoveries);
    all.forEach(ServerEngine::retire);
    super.forget();
  }
}
