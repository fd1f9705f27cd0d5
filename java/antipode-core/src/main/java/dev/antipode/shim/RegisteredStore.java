package dev.antipode.shim;

import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.Store;
import dev.antipode.StoreOptions;
import dev.antipode.Version;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.store.StoreAccess;
import dev.antipode.internal.store.StoreFactory;
import dev.antipode.observer.ObservedStore;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * A registered datastore as shims see it: the servers that its readers here may use, and the writes that shims record (spec
 * SHIM). Who judges the servers makes the store ({@link StoreFactory}).
 */
public abstract class RegisteredStore implements Store, ObservedStore {
  private final String name;
  private final Shim shim;
  private final boolean givesPositions;
  private volatile StoreOptions options;
  private Optional<String> envelopeKeys; // under the lock; null until somebody said which

  private static final int MOST_ENTRIES = 100_000; // parked, a store and process (BAR-60)

  private final AtomicInteger parkedEntries = new AtomicInteger();
  private final AtomicInteger parkedThreads = new AtomicInteger();
  private final AtomicInteger parkedTasks = new AtomicInteger();

  private final ReentrantLock lock = new ReentrantLock();

  static {
    StoreAccess.giveJoin(RegisteredStore::join);
  }

  /** A store without servers; the registry has the shim serve it. */
  protected RegisteredStore(String name, Shim shim, StoreOptions options) {
    checkName(name);
    this.name = name;
    this.shim = shim;
    this.options = options;
    this.givesPositions = shim.capabilities().versions() == Capabilities.Versions.POSITION;
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
    return servers(false).stream().map(Server::address).toList();
  }

  @Override
  public Mode mode() {
    return ProcessSettings.modeOf(name, options.mode());
  }

  @Override
  public Duration timeout() {
    return ProcessSettings.timeoutOf(name, options.timeout());
  }

  /** Return how long a read of a client with these options waits. */
  public Duration timeoutOf(StoreOptions wrap) {
    return ProcessSettings.timeoutOf(name, wrap.timeout());
  }

  /** Its shim. */
  public Shim shim() {
    return shim;
  }

  /** The options of all that was wrapped or registered under its name. */
  public StoreOptions options() {
    return options;
  }

  private void join(StoreOptions later) {
    lock.lock();
    try {
      options = options.joinedWith(later);
    } finally {
      lock.unlock();
    }
    changed();
  }

  /** Something of the store has changed that barriers look at. */
  protected abstract void changed();

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
  public abstract Server useServer(StoreOptions wrap, Object target, String address);

  /** A wrapped client's broker, at which nobody reads: barriers of the region ask it only where no other server is known. */
  public abstract Server useServerAlone(Object target);

  /** Servers that readers of this region may use. */
  public abstract void listReplicas(StoreOptions said, List<String> fromEnvironment);

  /**
   * The server of a wrapped client that has none yet: until it is known no barrier passes on the others (BAR-52). A client
   * that is gone is waited for no more.
   *
   * @param wrap what it was wrapped with: where that names servers, barriers of the region do not wait for it
   * @param client whose server it is; it is held weakly
   * @param asking gives the target, or an empty list while nobody knows it; may throw and block. Where the server becomes
   *     known otherwise, the shim calls {@link ServerSource#found}
   */
  public abstract ServerSource expectServer(
      StoreOptions wrap, String words, Object client, Function<Object, ? extends Collection<?>> asking);

  /**
   * The same for a client that may come to lead elsewhere: what it is, is looked at whenever a barrier asks (BAR-52).
   *
   * @param looking what decides where it leads, at hand; equal as long as it leads where it led. May not throw or block
   */
  public abstract ServerSource expectServer(
      StoreOptions wrap,
      String words,
      Object client,
      Function<Object, ? extends Collection<?>> asking,
      Function<Object, ?> looking);

  /**
   * A connection of a wrapped client has reached a server: it is one of the store's as long as one leads there (BAR-62). Called
   * before the client hands the connection out, and whenever it is made anew (BAR-52).
   *
   * @param wrap what the client was wrapped with
   * @param connection told from others by itself, and held weakly
   * @param leads whether the connection is open there still; a thread of Antipode's own asks every 5 s while barriers come,
   *     so it neither blocks nor reads. Where it throws the connection leads there
   */
  public abstract Server reach(StoreOptions wrap, Object target, Object connection, Predicate<Object> leads);

  /** The servers of reach region; with {@code ownAlone} those of wrapped clients (reach replica). */
  public abstract List<? extends Server> servers(boolean ownAlone);

  /** The server with this address, or null. */
  public abstract Server serverAt(String address);

  // Places of parked barriers

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
    shim.forget();
  }

  // Reads

  /**
   * Begins a read.
   *
   * @param waitsOnRead whether its client was wrapped so that each read waits for what the scope holds (BAR-50)
   * @param keys of a store of objects, those that are read; null where nobody knows them
   */
  public Read read(boolean waitsOnRead, Collection<Key> keys) {
    return Read.of(this, waitsOnRead, keys, true, true);
  }

  /** Begins one of which nobody knows the keys; {@code isSure} is as for {@link dev.antipode.observer.Observer#observeRead}. */
  public Read read(boolean waitsOnRead, boolean isSure) {
    return Read.of(this, waitsOnRead, null, true, isSure);
  }

  /** Begins one of which observers hear in another way, or that may write, so that they hear of a write. */
  public Read readUntold(boolean waitsOnRead) {
    return Read.of(this, waitsOnRead, null, false, true);
  }

  /** See {@link Read#required}. */
  protected abstract List<WriteId> required(Reading reading, LineageScope scope, boolean waits);

  /** See {@link Read#await}. */
  protected abstract boolean awaitRead(
      Server server, Duration timeout, Reading reading, LineageScope scope, boolean waits);

  // Writes

  /** Whether writes are recorded at all; not in mode off. */
  @Override
  public boolean records() {
    return mode() != Mode.OFF;
  }

  @Override
  public boolean isDryRun() {
    return mode() == Mode.DRY_RUN;
  }

  /** Whether its writes are positions in its log. */
  @Override
  public boolean givesPositions() {
    return givesPositions;
  }

  @Override
  public boolean notesReads() {
    return shim.notesReads();
  }

  @Override
  public boolean isTapped() {
    return capabilities().tap();
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
