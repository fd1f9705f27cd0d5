package dev.antipode.memory;

import dev.antipode.Key;
import dev.antipode.shim.Capabilities.Versions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** One server of the embedded store: its log, its data, the marks in it. The log's lock guards it. */
final class Node {
  /** Nothing is on its way. */
  static final long NOTHING = Long.MAX_VALUE;

  final Versions versions;
  final String region;
  long lag;
  boolean frozen;
  boolean down;
  Node source;
  List<Entry> log = new ArrayList<>();
  int fetched;
  final List<MemoryWatch> watchers = new ArrayList<>();

  String instance;
  Map<Key, Cell> data;
  private Map<Key, Key> hashed;
  Map<String, Long> marks;
  Map<String, Long> ends;
  String epoch;
  long counter;

  Node(String region, long lag, Versions versions) {
    this.region = region;
    this.lag = lag;
    this.versions = versions;
    boot();
  }

  /** The server's process starts: another instance, with what its log holds. */
  void boot() {
    watchers.forEach(MemoryWatch::replaced);
    instance = shortId();
    data = new HashMap<>();
    hashed = new HashMap<>();
    marks = new HashMap<>();
    ends = new HashMap<>();
    epoch = "";
    counter = 0;
    log.forEach(this::apply);
  }

  static String shortId() {
    return UUID.randomUUID().toString().replace("-", "").substring(0, 16);
  }

  /** A record joins the log. */
  void append(Entry entry) {
    log.add(entry);
    apply(entry);
  }

  /** A record of the log takes effect. */
  private void apply(Entry entry) {
    if (!entry.epoch().equals(epoch) && !epoch.isEmpty()) {
      ends.put(epoch, counter);
    }
    epoch = entry.epoch();
    counter = entry.counter();
    if (entry.mark() != null) {
      marks.merge(entry.mark().epoch(), entry.mark().counter(), Node::greater);
    } else if (entry.value() == null && versions != Versions.OBJECT) {
      data.remove(entry.key());
    } else {
      if (versions != Versions.POSITION) {
        hashed.put(entry.key().hashed(), entry.key());
      }
      data.put(entry.key(), new Cell(entry.value(), entry.lineage(), entry.version()));
    }
  }

  static long greater(long one, long other) {
    return Long.compareUnsigned(one, other) >= 0 ? one : other;
  }

  /**
   * Applies what has arrived from its source by now: {@code now} where that was anything, else when the next arrives,
   * or {@link #NOTHING}.
   */
  long fetch(long now) {
    if (source == null) {
      return NOTHING;
    }
    int began = fetched;
    long due = NOTHING;
    while (fetched < source.log.size()) {
      Entry entry = source.log.get(fetched);
      due = entry.due() + lag;
      if (due > now) {
        break;
      }
      append(source.source == null ? entry : entry.at(due));
      fetched++;
      due = NOTHING;
    }
    if (fetched == began) {
      return due;
    }
    List.copyOf(watchers).forEach(MemoryWatch::changed);
    return now;
  }

  /** The records that can reach it and that it has not applied, its source's own to come among them. */
  List<Entry> coming() {
    if (source == null || frozen || down) {
      return List.of();
    }
    List<Entry> coming = new ArrayList<>(source.log.subList(fetched, source.log.size()));
    coming.addAll(source.coming());
    return coming;
  }

  /** Applies the next so many of what is coming, and at its source what that has not got itself. */
  void take(int count) {
    if (count == 0) {
      return;
    }
    int end = fetched + count;
    source.take(Math.max(end - source.log.size(), 0));
    source.log.subList(fetched, end).forEach(this::append);
    fetched = end;
    List.copyOf(watchers).forEach(MemoryWatch::changed);
  }

  /** It fetches its log from this server from now on; what that has not got is cut off. */
  void follow(Node origin) {
    int kept = 0;
    int most = Math.min(log.size(), origin.log.size());
    while (kept < most && isSame(log.get(kept), origin.log.get(kept))) {
      kept++;
    }
    source = origin;
    log = new ArrayList<>(log.subList(0, kept));
    fetched = kept;
    boot();
  }

  private static boolean isSame(Entry mine, Entry theirs) {
    return mine.counter() == theirs.counter() && mine.epoch().equals(theirs.epoch());
  }

  /** What the server has of an object, also by the hashed form of its key; null where it has nothing. */
  Cell cell(Key key) {
    Cell found = data.get(key);
    return found != null ? found : data.get(hashed.getOrDefault(key, Key.EMPTY));
  }
}
