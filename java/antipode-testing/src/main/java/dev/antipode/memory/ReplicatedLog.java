package dev.antipode.memory;

import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.Opaque;
import dev.antipode.Ordered;
import dev.antipode.Version;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.HybridClock;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.stream.IntStream;

/** Servers of one store in this process, and the faults that can be made to happen. The first is the primary. */
class ReplicatedLog {
  /** A mark is written when an epoch is first met, and at most so often while the primary writes. */
  private static final long MARK_PERIOD = TimeUnit.SECONDS.toNanos(1);

  /** What an opaque mark of a deletion begins with. */
  static final String DELETED = "deleted-";

  private final String name;
  private final Versions versions;
  private final StaleChoice choice; // null: a clock brings what is written
  private final HybridClock clock = HybridClock.create();
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Map<String, Node> nodes = new LinkedHashMap<>();
  private Node primary;
  private String epoch = "";
  private long counters;
  private long markedAt = Ticks.LONG_AGO;
  private boolean losesAnswer;
  private Thread ticker;

  ReplicatedLog(String name, List<String> regions, Map<String, Long> lags, Versions versions, StaleChoice choice) {
    this.name = name;
    this.versions = versions;
    this.choice = choice;
    for (String region : regions) {
      nodes.put(region, new Node(region, lags.getOrDefault(region, 0L), versions));
    }
    primary = nodes.get(regions.get(0));
    beginEpoch();
    for (Node node : nodes.values()) {
      if (node != primary) { // a replica begins as a copy of its primary
        node.log = new ArrayList<>(primary.log);
        node.follow(primary);
      }
    }
  }

  String name() {
    return name;
  }

  Versions versions() {
    return versions;
  }

  // Faults

  void setLag(String region, long nanos) {
    if (isMonkey()) {
      throw new ConfigurationException(
          "AP501", "lag in monkey mode: there is no clock, each read chooses how stale it is");
    }
    locked(() -> node(region).lag = nanos);
    tick();
  }

  void freeze(String region) {
    locked(() -> {
      catchUp();
      node(region).frozen = true;
    });
  }

  void heal(String region) {
    locked(() -> node(region).frozen = false);
    tick();
  }

  void promote(String region, int lose) {
    locked(() -> {
      catchUp();
      Node node = node(region);
      if (node == primary) {
        throw new ConfigurationException("AP501", region + " is the primary already");
      }
      node.log = new ArrayList<>(primary.log.subList(0, kept(lose)));
      node.frozen = false;
      node.boot();
      primary = node;
      node.source = null;
      beginEpoch();
      for (Node other : nodes.values()) {
        if (other != node) {
          other.follow(node);
        }
      }
    });
    tick();
  }

  /** How many records of the primary's log are left when its last {@code lose} writes are lost. */
  private int kept(int lose) {
    int kept = primary.log.size();
    int left = lose;
    while (left > 0 && kept > 0) {
      kept--;
      left -= primary.log.get(kept).mark() == null ? 1 : 0;
    }
    if (left > 0) {
      throw new ConfigurationException("AP501", "lose " + lose + ": only " + (lose - left) + " writes were made");
    }
    return kept;
  }

  void repoint(String region, String source) {
    locked(() -> {
      catchUp();
      Node node = node(region);
      Node origin = node(source);
      for (Node upstream = origin; upstream != null; upstream = upstream.source) {
        if (upstream == node) {
          throw new ConfigurationException("AP501", source + " replicates from " + region + ": that would be a circle");
        }
      }
      node.follow(origin);
    });
    tick();
  }

  void restart(String region) {
    locked(() -> {
      catchUp();
      Node node = node(region);
      node.down = false;
      node.boot();
      if (node == primary) {
        beginEpoch();
      }
    });
    tick();
  }

  void stop(String region) {
    locked(() -> {
      catchUp();
      node(region).down = true;
    });
  }

  void loseNextAnswer() {
    locked(() -> losesAnswer = true);
  }

  /** Writes at the primary without Antipode. */
  void put(Key key, byte[] value) {
    Node now;
    lock.lock();
    try {
      now = primary;
    } finally {
      lock.unlock();
    }
    write(now, key, value, "");
  }

  void settle(String ended, long counter) {
    locked(() -> log(Key.EMPTY, null, "", new Entry.Mark(ended, counter)));
    tick();
  }

  /** The epochs that the primary's marks speak of, with the greatest position before each mark. */
  Map<String, Long> epochs() {
    lock.lock();
    try {
      return new TreeMap<>(primary.marks);
    } finally {
      lock.unlock();
    }
  }

  // Data

  Node node(String region) {
    Node node = nodes.get(region);
    if (node == null) {
      throw new ConfigurationException(
          "AP501", "no region " + region + " in " + name + ": " + String.join(", ", nodes.keySet()));
    }
    return node;
  }

  /** Whether this server takes the writes now. */
  boolean isPrimary(Node node) {
    lock.lock();
    try {
      return node == primary;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Writes at a server, which has to be the primary; returns the version.
   *
   * <p>The deletion of an object that is not there has the version of its tombstone; null where it has none, and in a
   * store of positions is a write like others.
   */
  Version write(Node node, Key key, byte[] value, String lineage) {
    Version version;
    boolean lost;
    lock.lock();
    try {
      needUp(node);
      if (node != primary) {
        throw new ReadOnlyReplicaException(name + ": the server in " + node.region + " is a read-only replica");
      }
      Cell there = node.data.get(key);
      if (value == null && versions != Versions.POSITION && (there == null || there.value() == null)) {
        return there == null ? null : there.version();
      }
      version = log(key, value, lineage, null);
      if (Ticks.now() - markedAt > MARK_PERIOD) {
        mark();
      }
      lost = losesAnswer;
      losesAnswer = false;
    } finally {
      lock.unlock();
    }
    tick();
    if (lost) {
      throw unreachable(name + ": the connection broke before the answer came");
    }
    return version;
  }

  /** Whether replicas are as stale as each read chooses, and not by a clock. */
  boolean isMonkey() {
    return choice != null;
  }

  /** The server as a read of this key finds it, standing still meanwhile; an exception as {@link #looking} has it. */
  <T> T reading(Node node, Key key, Function<Node, T> read) {
    return looking(node, there -> {
      if (isMonkey()) {
        choose(there, key);
      }
      return read.apply(there);
    });
  }

  /** Applies what the version that is chosen for a read needs, and no more (MONKEY-3). */
  private void choose(Node node, Key key) {
    List<Entry> coming = node.coming();
    int[] places = IntStream.range(0, coming.size())
        .filter(place -> coming.get(place).mark() == null && coming.get(place).key().equals(key))
        .toArray();
    if (places.length == 0) {
      return;
    }
    int behind = choice.behind(new StaleRead(name, node.region, key, places.length));
    if (behind < 0 || behind > places.length) {
      throw new ConfigurationException(
          "AP501", "monkey mode: " + behind + " versions behind the newest, want 0 (the newest) to " + places.length);
    }
    if (behind < places.length) {
      node.take(places[places.length - 1 - behind] + 1);
    }
  }

  /** The server as it is now, standing still meanwhile; an {@link UncheckedIOException} where it is down. */
  <T> T looking(Node node, Function<Node, T> look) {
    lock.lock();
    try {
      needUp(node);
      catchUp();
      return look.apply(node);
    } finally {
      lock.unlock();
    }
  }

  private void needUp(Node node) {
    if (node.down) {
      throw unreachable(name + ": the server in " + node.region + " refuses connections");
    }
  }

  private static UncheckedIOException unreachable(String message) {
    return new UncheckedIOException(message, new ConnectException(message));
  }

  // Inside; with the lock held

  private void locked(Runnable work) {
    lock.lock();
    try {
      work.run();
    } finally {
      lock.unlock();
    }
  }

  /** A history with one writer begins; the mark of the one before lies behind all that survived of it. */
  private void beginEpoch() {
    Node node = primary;
    node.down = false;
    String ended = node.epoch;
    long end = node.counter;
    counters = 0;
    epoch = Node.shortId();
    if (!ended.isEmpty()) {
      log(Key.EMPTY, null, "", new Entry.Mark(ended, end));
    }
    mark();
  }

  private void mark() {
    markedAt = Ticks.now();
    long reached = primary.epoch.equals(epoch) ? primary.counter : 0;
    log(Key.EMPTY, null, "", new Entry.Mark(epoch, reached));
  }

  private Version log(Key key, byte[] value, String lineage, Entry.Mark mark) {
    long counter = ++counters;
    Version version = versions == Versions.POSITION ? new Ordered(epoch, counter) : objectVersion(key, value);
    primary.append(new Entry(Ticks.now(), epoch, counter, key, value, lineage, version, mark));
    return version;
  }

  /** A version that no object ever had or will have, whatever is deleted, lost or started anew (SHIM-10). */
  Version objectVersion(Key key, byte[] value) {
    if (versions == Versions.OPAQUE) {
      return new Opaque((value != null ? "" : DELETED) + Node.shortId());
    }
    return new Ordered("", clock.next());
  }

  /** Applies at each replica what has arrived by now; the time at which the next record arrives. */
  private long catchUp() {
    if (isMonkey()) {
      return Node.NOTHING; // each read chooses by itself
    }
    long now = Ticks.now();
    while (true) { // a replica may be fed by one that has just been fed itself
      boolean moved = false;
      long nearest = Node.NOTHING;
      for (Node node : nodes.values()) {
        long due = node.frozen || node.down ? Node.NOTHING : node.fetch(now);
        moved |= due <= now;
        nearest = Math.min(nearest, due);
      }
      if (!moved) {
        return nearest;
      }
    }
  }

  // Watching

  /** Keeps a thread while somebody watches, which applies records when they are due. */
  private void tick() {
    locked(() -> {
      if (ticker == null && isWatched()) {
        ticker = new Thread(this::run, "memory-" + name);
        ticker.setDaemon(true);
        ticker.start();
      }
      changed.signalAll();
    });
  }

  private boolean isWatched() {
    return nodes.values().stream().anyMatch(node -> !node.watchers.isEmpty());
  }

  private void run() {
    lock.lock();
    try {
      while (isWatched()) {
        long nearest = catchUp();
        long nanos = nearest == Node.NOTHING ? TimeUnit.SECONDS.toNanos(1) : nearest - Ticks.now();
        if (nanos > 0) {
          changed.awaitNanos(nanos);
        }
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } finally {
      ticker = null;
      lock.unlock();
    }
  }

  /** Has the watcher called whenever something was applied at the server, and when it starts anew. */
  void watch(Node node, MemoryWatch watch) {
    locked(() -> {
      needUp(node);
      node.watchers.add(watch);
    });
    tick();
  }

  /** Calls it no more. */
  void unwatch(Node node, MemoryWatch watch) {
    locked(() -> {
      node.watchers.remove(watch);
      changed.signalAll();
    });
  }
}
