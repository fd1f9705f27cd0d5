package dev.antipode.redis;

import dev.antipode.Antipode;
import dev.antipode.StoreOptions;
import dev.antipode.shim.Logs;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import java.time.Duration;

/** One wrapped client's tie to its store: what its commands, pipelines and transactions share. */
final class Binding {
  private static final long DENIED = Duration.ofSeconds(10).toNanos(); // then the right may have been granted

  private final RegisteredStore store;
  private final StoreOptions options;
  private final Target target;
  private final Server server;
  private final Marker marker;
  private final LineagePlacement beside;
  private volatile long deniedAt;
  private volatile String denied; // null where the position may be asked for

  Binding(
      RegisteredStore store, StoreOptions options, LineagePlacement beside, Target target, Server server, Marker marker) {
    this.store = store;
    this.options = options;
    this.target = target;
    this.server = server;
    this.marker = marker;
    this.beside = beside;
  }

  RegisteredStore store() {
    return store;
  }

  /** What this client was wrapped with; other clients of the store may differ. */
  StoreOptions options() {
    return options;
  }

  Target target() {
    return target;
  }

  Server server() {
    return server;
  }

  Marker marker() {
    return marker;
  }

  /** The key of the store's marks. */
  String key() {
    return ((RedisShim) store.shim()).marksKey();
  }

  /** Where lineages rest beside values. */
  LineagePlacement beside() {
    return beside;
  }

  boolean records() {
    return store.records();
  }

  boolean merges() {
    return Antipode.settings().autoMerge() && records();
  }

  boolean waits() {
    return options.waitOnRead() && records();
  }

  /** In dry-run reads are followed, and none waits (REC-12). */
  boolean follows() {
    return store.isDryRun();
  }

  /** How long a read of this client waits. */
  Duration timeout() {
    return store.timeoutOf(options);
  }

  // The position behind a write

  /** Whether the question may ride behind a write: it was not refused lately. */
  boolean mayAsk() {
    return denied == null || System.nanoTime() - deniedAt > DENIED;
  }

  /** The server refused to say where it is. */
  void denied(String words) {
    deniedAt = System.nanoTime();
    denied = words;
    say(
        "AP506",
        "rights",
        "writes to " + store.name() + " are recorded as incomplete: its user may not ask where they are (" + words
            + "). " + Facts.grant(key()));
  }

  /** The server's words when it refused. */
  String whyDenied() {
    return denied;
  }

  /** Why positions of this server prove nothing; empty where they do. */
  String unfit() {
    return marker.facts().cluster() ? target.address() + " " + Facts.CLUSTER : "";
  }

  /** One line a minute. */
  void say(String code, String kind, String words) {
    Logs.warn(code, kind + " " + store.name(), words);
  }
}
