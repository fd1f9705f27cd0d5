package dev.antipode.memory;

import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.StoreOptions;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Shims;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * An in-process replicated store: the embedded default, and a test double for any kind of store. The first region's
 * server is the primary; it replicates a log to the others with a lag, and can be frozen, healed, promoted with lost
 * writes and restarted, as a real store can. Every wait goes through the same engine as for a real store.
 *
 * <pre>{@code
 * MemoryStore store = MemoryStore.named("blog-posts").regions("a", "b").lag(Duration.ofMillis(80));
 * MemoryClient posts = store.client("a");
 * }</pre>
 *
 * <p>Regions, lag, versions and monkey mode are said before anything else: each of these makes another store, with servers
 * of its own.
 */
public final class MemoryStore {
  private final String name;
  private final List<String> regions;
  private final Map<String, Long> lags;
  private final Versions versions;
  private final Supplier<? extends Shim> shim;
  private final Function<List<String>, StaleChoice> monkey; // by the regions; null: a clock brings what is written
  private final ReplicatedLog log;

  private MemoryStore(
      String name,
      List<String> regions,
      Map<String, Long> lags,
      Versions versions,
      Function<List<String>, StaleChoice> monkey,
      Supplier<? extends Shim> shim) {
    if (regions.isEmpty() || new HashSet<>(regions).size() != regions.size()) {
      throw new ConfigurationException("AP501", "regions" + regions + ": want different names, the primary's first");
    }
    if (monkey != null && lags.values().stream().anyMatch(lag -> lag != 0)) {
      throw new ConfigurationException(
          "AP501", "lag in monkey mode: there is no clock, each read chooses how stale it is");
    }
    this.name = name;
    this.regions = regions;
    this.lags = lags;
    this.versions = versions;
    this.monkey = monkey;
    Supplier<? extends Shim> own =
        monkey == null ? () -> MemoryShim.of(versions) : () -> MemoryShim.ofMonkey(versions);
    this.shim = shim == null ? own : shim;
    this.log = new ReplicatedLog(name, regions, lags, versions, monkey == null ? null : monkey.apply(regions));
  }

  /** A store of this logical name, with regions a and b, without lag, of positions. */
  public static MemoryStore named(String name) {
    return new MemoryStore(name, List.of("a", "b"), Map.of(), Versions.POSITION, null, null);
  }

  /** A store with these regions, the primary's first. */
  public MemoryStore regions(String... names) {
    return new MemoryStore(name, List.of(names), lags, versions, monkey, null);
  }

  /** A store whose writes reach every region but the primary's so much later. */
  public MemoryStore lag(Duration lag) {
    Map<String, Long> all = new HashMap<>();
    regions.stream().skip(1).forEach(region -> all.put(region, lag.toNanos()));
    return new MemoryStore(name, regions, all, versions, monkey, null);
  }

  /** A store whose writes reach this region so much later. */
  public MemoryStore lag(String region, Duration lag) {
    log.node(region);
    Map<String, Long> more = new HashMap<>(lags);
    more.put(region, lag.toNanos());
    return new MemoryStore(name, regions, more, versions, monkey, null);
  }

  /**
   * A store that gives such versions: positions (places in a log, with epochs and marks), objects (each has a version
   * that compares, and deletes leave tombstones) or opaque ones (equal or not).
   */
  public MemoryStore versions(Versions kind) {
    return new MemoryStore(name, regions, lags, kind, monkey, null);
  }

  /**
   * A store without a clock: each read at a replica returns any version that is legal there (spec MONKEY), chosen by
   * this seed, unsigned. A barrier brings what it waits for.
   */
  public MemoryStore monkey(long seed) {
    return monkeyBy(all -> StaleChoice.seeded(seed, all));
  }

  /** The same, chosen so. */
  public MemoryStore monkey(StaleChoice choice) {
    return monkeyBy(all -> choice);
  }

  private MemoryStore monkeyBy(Function<List<String>, StaleChoice> choosing) {
    return new MemoryStore(name, regions, lags, versions, choosing, null);
  }

  /** A store that another shim answers for: to show that tests of shims can fail. */
  MemoryStore answeredBy(Supplier<? extends Shim> other) {
    return new MemoryStore(name, regions, lags, versions, monkey, other);
  }

  /** Its logical name. */
  public String name() {
    return name;
  }

  ReplicatedLog log() {
    return log;
  }

  // Clients

  /** A client of one region's server, recorded and waited for under the store's name in this process. */
  public MemoryClient client(String region) {
    return client(region, StoreOptions.named(name));
  }

  /** The same, whose reads first wait, or with other options. */
  public MemoryClient client(String region, StoreOptions options) {
    Target target = new Target(log, log.node(region));
    RegisteredStore joined = Shims.join(options, shim);
    return new MemoryClient(target, joined, joined.useServer(options, target), options.waitOnRead());
  }

  /** This process waits for the servers of these regions, and never reads. */
  public void register(String... names) {
    Shims.join(StoreOptions.named(name).replicas(servers(names)), shim);
  }

  /** Return the servers of these regions, as {@link StoreOptions#replicas(Object...)} takes them. */
  public List<Object> servers(String... names) {
    return Stream.of(names).<Object>map(region -> new Target(log, log.node(region))).toList();
  }

  // Faults

  /** From now on writes reach this region so much later. */
  public void setLag(String region, Duration lag) {
    log.setLag(region, lag.toNanos());
  }

  /** The link to this region carries nothing until {@link #heal}. */
  public void freeze(String region) {
    log.freeze(region);
  }

  /** The link carries again, and what was held back arrives at once. */
  public void heal(String region) {
    log.heal(region);
  }

  /** This region's server becomes the primary, under a new epoch; the other servers follow it. */
  public void promote(String region) {
    log.promote(region, 0);
  }

  /** The same; the old primary's last writes, so many of them, are lost. */
  public void promote(String region, int lose) {
    log.promote(region, lose);
  }

  /** This region's server follows another replica, or the primary, from now on. */
  public void repoint(String region, String source) {
    log.repoint(region, source);
  }

  /** The server's process ends and starts again, with what it had. */
  public void restart(String region) {
    log.restart(region);
  }

  /** The server refuses connections until {@link #restart}. */
  public void stop(String region) {
    log.stop(region);
  }

  /** The next write takes effect, and its writer never hears of it: an {@link java.io.UncheckedIOException}. */
  public void loseNextAnswer() {
    log.loseNextAnswer();
  }

  /** Writes at the primary without Antipode, as code that does not know it. */
  public void put(String key, String value) {
    log.put(Key.of(key), value.getBytes(StandardCharsets.UTF_8));
  }

  /** What a server has now, without Antipode; null where it has nothing: for tests of what barriers say. */
  public String look(String region, String key) {
    Cell cell = log.looking(log.node(region), node -> node.data.get(Key.of(key)));
    return cell == null || cell.value() == null ? null : new String(cell.value(), StandardCharsets.UTF_8);
  }

  /** The epochs that the primary's marks speak of, with the greatest position before each mark (unsigned). */
  public Map<String, Long> epochs() {
    return log.epochs();
  }

  /** The operator's word that the store holds an ended epoch, all of it: a mark (EPOCH-24). */
  public void settle(String epoch) {
    log.settle(epoch, -1L);
  }
}
