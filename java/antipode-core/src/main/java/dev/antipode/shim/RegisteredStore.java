package dev.antipode.shim;

import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.Logs;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.Store;
import dev.antipode.StoreOptions;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.barrier.ServerEngine;
import dev.antipode.barrier.Ticks;
import dev.antipode.configuration.ProcessSettings;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * A registered datastore as shims and the engine see it: the servers that its readers here may use, and the writes that
 * shims record (spec SHIM).
 */
public final class RegisteredStore implements Store {
  private static final long REFRESH = TimeUnit.SECONDS.toNanos(5);

  private final String name;
  private final Shim shim;
  private final boolean givesPositions;
  private volatile StoreOptions options;
  private Optional<String> envelopeKeys; // under the lock; null until somebody said which

  private final AtomicInteger parkedThreads = new AtomicInteger();
  private final AtomicInteger parkedTasks = new AtomicInteger();

  // Servers. The lock guards the maps; the snapshots are what barriers read.
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<String, ServerEngine> own = new LinkedHashMap<>();
  private final Map<String, ServerEngine> listed = new LinkedHashMap<>();
  private final Set<Supplier<? extends Collection<?>>> listings = new LinkedHashSet<>();
  private volatile List<ServerEngine> ownServers = List.of();
  private volatile List<ServerEngine> regionServers = List.of();
  private volatile boolean asksAgain;
  private volatile int generation;
  private volatile long askedAt = Ticks.LONG_AGO;
  private final AtomicBoolean refreshing = new AtomicBoolean();

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
      throw new ConfigurationException(error.getMessage(), error);
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
          "%s was wrapped with envelopeKeys %s before, and now with %s: one would misread the other's values. Give every "
                  .formatted(name, said.orElse("none"), now.orElse("none"))
              + "wrap of this store, in every process, the same envelopeKeys");
    }
  }

  // Servers

  /** A wrapped client's own server joins the store. */
  public Server useServer(Object target) {
    return useServer(target, shim.address(target));
  }

  /** A wrapped client's own server joins the store, under this address. */
  public Server useServer(Object target, String address) {
    return add(own, target, address);
  }

  /** Servers that readers of this region may use; with a list, a wrapped client's own is not added (BAR-22). */
  void listReplicas(StoreOptions said, List<String> fromEnvironment) {
    List<?> servers = said.replicas();
    if (servers == null && said.listing() == null) {
      servers = fromEnvironment;
    }
    if (servers != null) {
      for (Object target : servers) {
        add(listed, target, shim.address(target));
      }
    }
    if (said.listing() != null) {
      lock.lock();
      try {
        listings.add(said.listing());
        asksAgain = true;
      } finally {
        lock.unlock();
      }
      refresh();
    }
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
    ServerEngine server = own.get(address);
    return server != null ? server : listed.get(address);
  }

  private void serversChanged() {
    ownServers = List.copyOf(own.values());
    regionServers = listed.isEmpty() ? ownServers : List.copyOf(listed.values());
    generation++; // written under the lock alone
  }

  /** The servers of reach region; with {@code ownAlone} those of wrapped clients (reach replica). */
  public List<ServerEngine> servers(boolean ownAlone) {
    if (refreshDue(Ticks.now())) {
      askedAt = Ticks.now();
      Thread asking = new Thread(this::refresh, "antipode-replicas-" + name);
      asking.setDaemon(true);
      asking.start();
    }
    List<ServerEngine> mine = ownServers;
    return ownAlone && !mine.isEmpty() ? mine : regionServers;
  }

  /** Whether what lists the servers is to be asked again. */
  public boolean refreshDue(long now) {
    return asksAgain && now - askedAt > REFRESH;
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

  /** Asks what lists the servers again; a server that is no longer listed is not waited for any more. */
  private void refresh() {
    if (!refreshing.compareAndSet(false, true)) {
      return;
    }
    boolean isFirst = askedAt == Ticks.LONG_AGO;
    try {
      List<Supplier<? extends Collection<?>>> asked;
      lock.lock();
      try {
        asked = List.copyOf(listings);
      } finally {
        lock.unlock();
      }
      Map<String, Object> wanted = new LinkedHashMap<>();
      for (Supplier<? extends Collection<?>> listing : asked) {
        listing.get().forEach(target -> wanted.put(shim.address(target), target));
      }
      wanted.forEach((address, target) -> add(listed, target, address));
      lock.lock();
      try {
        if (listed.keySet().retainAll(wanted.keySet())) {
          serversChanged();
        }
      } finally {
        lock.unlock();
      }
    } catch (RuntimeException error) { // the application's own code: the servers known so far stay
      Logs.warn("replicas " + name, "what lists the replicas of " + name + " failed: " + error);
      if (isFirst) {
        throw error;
      }
    } finally {
      askedAt = Ticks.now();
      refreshing.set(false);
    }
  }

  // Places of parked barriers

  /** Takes one of the places of parked barriers, for a thread or a future; false where all are taken (BAR-39). */
  public boolean takePlace(int limit, boolean tasks) {
    AtomicInteger places = tasks ? parkedTasks : parkedThreads;
    if (places.incrementAndGet() > limit) {
      places.decrementAndGet();
      return false;
    }
    return true;
  }

  /** The barrier is parked no more. */
  public void givePlaceBack(boolean tasks) {
    (tasks ? parkedTasks : parkedThreads).decrementAndGet();
  }

  /** How many barriers wait for this store now. */
  public int parked() {
    return parkedThreads.get() + parkedTasks.get();
  }

  /** Gives its servers up: their threads end at once, with their channels, and the shim's own (tests). */
  public void forget() {
    List<ServerEngine> all = new ArrayList<>(ownServers);
    all.addAll(regionServers);
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
