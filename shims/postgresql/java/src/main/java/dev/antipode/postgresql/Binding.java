package dev.antipode.postgresql;

import dev.antipode.Mode;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.shim.Logs;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import javax.sql.DataSource;
import org.postgresql.PGProperty;
import org.postgresql.core.BaseConnection;

/** One wrapped client's tie to its store: the options, and how writes and reads are treated. */
final class Binding {
  /** What tells where a client leads, and not who it is. */
  private static final List<PGProperty> OF_PLACES =
      List.of(PGProperty.PG_HOST, PGProperty.PG_PORT, PGProperty.TARGET_SERVER_TYPE);

  private final RegisteredStore store;
  private final StoreOptions options;
  private final Leads leads; // null for a connection
  private final boolean hasOnePart;
  private final boolean rests;
  private final boolean flushesAsynchronous;

  private volatile Mode mode = Mode.ENFORCE;
  private volatile UnsureNames unsure = UnsureNames.of(List.of());

  /** {@code plain} is the wrapped client, null for a connection; {@code hasOnePart}: its settings are those of all it opens. */
  Binding(RegisteredStore store, StoreOptions options, DataSource plain, boolean hasOnePart) {
    this.hasOnePart = hasOnePart;
    this.store = store;
    this.options = options;
    this.leads = plain == null ? null : new Leads(plain);
    this.rests = options.restOr(null) == Rest.NATIVE;
    this.flushesAsynchronous = !"incomplete".equals(options.extra(AntipodePostgres.ASYNC_COMMITS));
  }

  /** Take the mode in force, which settings and another wrap of the store may change; called before every statement. */
  Binding refreshed() {
    mode = store.mode();
    return this;
  }

  /** A connection leads to this server: as long as it is open, where the client's settings name that of the next one (BAR-62). */
  Server reach(Target target, BaseConnection physical) {
    return leads != null && hasOnePart && leads.namesServer()
        ? store.reach(options, target, physical, Binding::isOpen)
        : store.useServer(options, target, target.address());
  }

  private static boolean isOpen(Object physical) {
    try {
      return !((BaseConnection) physical).isClosed();
    } catch (SQLException error) { // nobody can tell
      return true;
    }
  }

  /** What its database has that makes texts unsure. */
  void unsure(UnsureNames found) {
    unsure = found;
  }

  /** Return what a statement may do; null: nobody knows its text. */
  Kind classify(String text) {
    return unsure.classify(text);
  }

  RegisteredStore store() {
    return store;
  }

  StoreOptions options() {
    return options;
  }

  /** Where the client's connections lead; null for a connection. */
  Leads leads() {
    return leads;
  }

  /** Return the user, password and TLS of this client, else of the first that was wrapped; and its factory of sockets. */
  Properties credentials() {
    Properties words = new Properties();
    words.putAll(((PostgresqlShim) store.shim()).credentials());
    Credentials.OF_SOCKETS.forEach(property -> words.remove(property.getName()));
    OF_PLACES.forEach(property -> words.remove(property.getName()));
    if (leads != null) {
      words.putAll(leads.words());
    }
    return words;
  }

  /** The same for a part of the client, which has these words: where that leads, the other parts' words do not tell. */
  Properties credentials(Properties own) {
    Properties words = credentials();
    Credentials.OF_SOCKETS.forEach(property -> words.remove(property.getName()));
    OF_PLACES.forEach(property -> words.remove(property.getName()));
    words.putAll(own);
    return words;
  }

  /** Whether writes are recorded. */
  boolean records() {
    return mode != Mode.OFF;
  }

  /** Whether reads are followed, and none waits: in dry-run (REC-12). */
  boolean follows() {
    return mode == Mode.DRY_RUN;
  }

  /** Whether lineages rest in a column beside rows. */
  boolean rests() {
    return rests;
  }

  /** Whether an asynchronous commit gets a flushed commit of nothing behind it; else it is incomplete. */
  boolean flushesAsynchronous() {
    return flushesAsynchronous;
  }

  /** How long a read of this client waits. */
  Duration timeout() {
    return store.timeoutOf(options);
  }

  /** One line a minute. */
  void say(String code, String kind, String words) {
    Logs.warn(code, kind + " " + store.name(), words);
  }
}
