package dev.antipode.shim;

import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.Store;
import dev.antipode.StoreOptions;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.barrier.Ages;
import dev.antipode.barrier.Discovery;
import dev.antipode.barrier.Discovery.Whose;
import dev.antipode.barrier.ServerEngine;
import dev.antipode.barrier.Ticks;
import dev.antipode.configuration.ProcessSettings;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A registered datastore as shims and the engine see it: the servers that its readers here may use, and the writes that
 * shims record (spec SHIM).
 */
public final class RegisteredStore implements Store {
  private final String name;
  private final Shim shim;
  private final boolean givesPositions;
  private volatile StoreOptions options;
  private Optional<String> envelopeKeys; // under the lock; null until somebody said which

  private static final int MOST_ENTRIES = 100_000; // parked, a store and process (BAR-60)

  private final Ages ages = new Ages();
  private final AtomicInteger parkedEntries = new AtomicInteger();
  private final AtomicInteger parkedThreads = new AtomicInteger();
  private final AtomicInteger parkedTasks = new AtomicInteger();

  // Servers. The lock guards the maps; the snapshots are what barriers read.
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<String, ServerEngine> own = new LinkedHashMap<>(); // of wrapped clients
  private final Map<String, ServerEngine> region = new LinkedHashMap<>(); // listed, and of wraps without a list
  private final Map<String, ServerEngine> aside = new LinkedHashMap<>(); // no barrier asks them
  private final Map<String, Long> gone = new HashMap<>(); // when discovery took an address away
  private volatile List<ServerEngine> ownServers = List.of();
  private volatile List<ServerEngine> regionServers = List.of();
  private volatile List<Discovery> discoveries = List.of();
  private volatile int generation;

  RegisteredStore(String name, Shim shim, StoreOptions options) {
    checkName(name);
    this.name = name;
    this.shim = shim;
    this.options = options;
    this.givesPositions = shim.capabilities().versions() == Capabilities.Versions.POSITION;
    shim.serve(this);
  }

  private static void checkName(String name) {
    try {
      new WriteId(name, Key.of("check"), new Ordered("", 0));
    } catch (IllegalArgumentException error) { // a name that the wire cannot carry
      throw new ConfigurationException("AP501", error.getMessage(), error);
    }
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String kind() {
    return shim.kind();
  }

  @Override
  public Capabilities capabilities() {
    return shim.capabilities();
  }

  @Override
  public List<String> replicas() {
    return servers(false).stream().map(ServerEngine::address).toList();
  }

  @Override
  public Mode mode() {
    return ProcessSettings.modeOf(name, options.mode());
  }

  @Override
  public Duration timeout() {
    return ProcessSettings.timeoutOf(name, options.timeout());
  }

  /** Its shim. */
  public Shim shim() {
    return shim;
  }

  /** The options of all that was wrapped or registered under its name. */
  public StoreOptions options() {
    return options;
  }

  void join(StoreOptions later) {
    lock.lock();
    try {
      options = options.joinedWith(later);
      generation++;
    } finally {
      lock.unlock();
    }
  }

  /**
   * A wrap says which keys hold envelopes (null: no key does); every wrap of the store has to say the same (SHIM-37).
   *
   * @throws ConfigurationException where an earlier one said otherwise: one would misread the other's values
   */
  public void agreeOnEnvelopes(String keys) {
    Optional<String> now = Optional.ofNullable(keys);
    Optional<String> said;
    lock.lock();
    try {
      if (envelopeKeys == null) {
        envelopeKeys = now;
      }
      said = envelopeKeys;
    } finally {
      lock.unlock();
    }
    if (!said.equals(now)) {
      throw new ConfigurationException(
          "AP503",
          "%s was wrapped with envelopeKeys %s before, and now with %s: one would misread the other's values. Give every "
                  .formatted(name, said.orElse("none"), now.orElse("none"))
              + "wrap of this store, in every process, the same envelopeKeys");
    }
  }

  // Servers

  /** A wrapped client's own server joins the store; {@code wrap} is what it was wrapped with. */
  public Server useServer(StoreOptions wrap, Object target) {
    return useServer(wrap, target, shim.address(target));
  }

  /** The same under this address. Where that wrap names no servers, it joins those of the region (BAR-22). */
  public Server useServer(StoreOptions wrap, Object target, String address) {
    boolean isAlone = namesServers(wrap);
    if (isNamed(target, address, isAlone ? Whose.NAMED_ALONE : Whose.NAMED)) {
      return add(aside, target, address); // for reads that wait
    }
    Server server = add(own, target, address);
    if (!isAlone) {
      add(region, target, address);
    }
    return server;
  }

  /** A wrapped client's broker, at which nobody reads: barriers of the region ask it only where no other server is known. */
  public Server useServerAlone(Object target) {
    return add(own, target, shim.address(target));
  }

  /** Return whether somebody names the servers that a target leads to, who is asked from now on. */
  private boolean isNamed(Object target, String address, Whose whose) {
    Callable<? extends Collection<?>> asking = shim.naming(target);
    if (asking == null) {
      return false;
    }
    discover(address, asking, whose);
    return true;
  }

  private boolean namesServers(StoreOptions said) {
    return said.replicas() != null || said.listing() != null || Registry.replicasInEnvironment(name) != null;
  }

  /** Servers that readers of this region may use. */
  void listReplicas(StoreOptions said, List<String> fromEnvironment) {
    List<?> servers = said.replicas();
    if (servers == null && said.listing() == null) {
      servers = fromEnvironment;
    }
    if (servers != null) {
      for (Object target : servers) {
        String address = shim.address(target);
        if (!isNamed(target, address, Whose.LISTED)) {
          add(region, target, address);
        }
      }
    }
    if (said.listing() != null) {
      join(new Discovery(this, "replicas(…)", said.listing(), listing -> said.listing().get(), Whose.LISTED)).ask();
    }
  }

  /**
   * The server of a wrapped client that has none yet: until it is known no barrier passes on the others (BAR-52). A client
   * that is gone is waited for no more.
   *
   * @param wrap what it was wrapped with: where that names servers, barriers of the region do not wait for it
   * @param client whose server it is; it is held weakly
   * @param asking gives the target, or an empty list while nobody knows it; may throw and block. Where the server becomes
   *     known otherwise, the shim calls {@link Discovery#found}
   */
  public Discovery expectServer(
      StoreOptions wrap, String words, Object client, Function<Object, ? extends Collection<?>> asking) {
    return join(new Discovery(this, words, client, asking, namesServers(wrap) ? Whose.CLIENTS_ALONE : Whose.CLIENTS));
  }

  /** Has somebody name servers, now and again every 5 s (BAR-53); wraps that say the same words share one question. */
  private Discovery discover(String words, Callable<? extends Collection<?>> asking, Whose whose) {
    Discovery asks = new Discovery(this, words, this, store -> asked(asking), whose);
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
      all.add(asks);
      discoveries = List.copyOf(all);
      generation++;
      return asks;
    } finally {
      lock.unlock();
    }
  }

  /**
   * The servers that a source names now, by address; those that it named before are gone (BAR-54). A client that connected
   * to another server may still have connections to the one before: both are its own.
   */
  public Map<String, ServerEngine> take(Discovery source, Collection<?> targets) {
    Map<String, ServerEngine> before = source.named();
    Map<String, ServerEngine> named = new LinkedHashMap<>(source.whose().isOnce() ? before : Map.of());
    lock.lock();
    try {
      for (Object target : targets) {
        String address = shim.address(target);
        Callable<? extends Collection<?>> asking = shim.naming(target);
        ServerEngine known = asking != null ? discover(address, asking, source.whose().again()) : at(address);
        named.put(address, known != null ? known : new ServerEngine(this, address, target));
      }
      before.keySet().stream().filter(address -> !named.containsKey(address)).forEach(away -> gone.put(away, Ticks.now()));
      gone.keySet().removeAll(named.keySet());
      if (!source.isKnown(Ticks.now()) || !before.keySet().equals(named.keySet())) {
        generation++;
      }
    } finally {
      lock.unlock();
    }
    return named;
  }

  /**
   * The addresses that discovery took away within {@code left_server} and that are not judged: a connection may still lead
   * there (BAR-54).
   */
  public List<String> gone(boolean ownAlone) {
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

  /**
   * The servers of reach region; with {@code ownAlone} those of wrapped clients (reach replica). Where somebody else has still
   * to name some, a {@link Discovery} stands for them: who waits there waits for that, too.
   */
  public List<ServerEngine> servers(boolean ownAlone) {
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
  public boolean isDiscoveryDue(long now) {
    for (Discovery each : discoveries) {
      boolean counts = each.whose().isOfRegion();
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
  public int generation() {
    return generation;
  }

  /** The server with this address, or null. */
  public Server serverAt(String address) {
    lock.lock();
    try {
      return at(address);
    } finally {
      lock.unlock();
    }
  }

  // Places of parked barriers

  /** When its positions were first seen at any of its servers. */
  public Ages ages() {
    return ages;
  }

  /**
   * Takes one of the places of parked barriers, for a thread or a future, and those of its entries; false where all are
   * taken (BAR-39, BAR-60).
   */
  public boolean takePlace(int limit, int entries, boolean tasks) {
    boolean isTaken = (tasks ? parkedTasks : parkedThreads).incrementAndGet() <= limit;
    isTaken &= parkedEntries.addAndGet(entries) <= MOST_ENTRIES;
    if (!isTaken) {
      givePlaceBack(entries, tasks);
    }
    return isTaken;
  }

  /** The barrier is parked no more. */
  public void givePlaceBack(int entries, boolean tasks) {
    (tasks ? parkedTasks : parkedThreads).decrementAndGet();
    parkedEntries.addAndGet(-entries);
  }

  /** How many barriers wait for this store now. */
  public int parked() {
    return parkedThreads.get() + parkedTasks.get();
  }

  /** Gives its servers up: their threads end at once, with their channels, and the shim's own (tests). */
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
    shim.forget();
  }

  // Writes

  /** Whether writes are recorded at all; not in mode off. */
  public boolean records() {
    return mode() != Mode.OFF;
  }

  /** Whether its barriers and reads are followed and recorded, and nothing waits (REC-12). */
  public boolean isDryRun() {
    return mode() == Mode.DRY_RUN;
  }

  /** Whether its writes are positions in its log. */
  boolean givesPositions() {
    return givesPositions;
  }

  /** Begins a write: it is pending in the current scope until it is recorded, abandoned or closed. */
  public Write begin(Key key) {
    return new Write(this, key);
  }

  /** Begins a write to a store that gives positions. */
  public Write begin() {
    return new Write(this, Key.EMPTY);
  }

  /** Whether its object keys travel as hashes. */
  public boolean hashesKeys() {
    Boolean said = options.hashKeys();
    return said != null ? said : ProcessSettings.inForce().hashKeys();
  }

  /** The write identifier of one object's version in this store. */
  public WriteId writeId(Key key, Version version) {
    return new WriteId(name, hashesKeys() ? key.hashed() : key, version);
  }

  @Override
  public String toString() {
    return "<Store " + name + " (" + kind() + ") " + String.join(", ", replicas()) + ">";
  }
}
