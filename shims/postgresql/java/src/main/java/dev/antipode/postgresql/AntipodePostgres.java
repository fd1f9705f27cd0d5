package dev.antipode.postgresql;

import dev.antipode.ConfigurationException;
import dev.antipode.Rest;
import dev.antipode.Store;
import dev.antipode.StoreOptions;
import dev.antipode.StoreOptions.OnUnfit;
import dev.antipode.UnfitStoreException;
import dev.antipode.shim.Logs;
import dev.antipode.shim.MetConnections;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.ServerSource;
import dev.antipode.shim.Shims;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.sql.DataSource;
import org.postgresql.PGProperty;
import org.postgresql.core.BaseConnection;

/**
 * Wraps DataSources of the PostgreSQL JDBC driver: what their connections commit joins the scope, and barriers elsewhere
 * wait for it.
 *
 * <pre>{@code
 * DataSource orders = AntipodePostgres.wrap(dataSource, "orders");
 * AntipodePostgres.register(StoreOptions.named("orders").replicas("jdbc:postgresql://b1/orders"));
 * Antipode.barrier();
 * }</pre>
 */
public final class AntipodePostgres {
  /**
   * The word of {@link StoreOptions#extra(String, Object)} for a write with {@code synchronous_commit = off}: {@code
   * "flush"} (a small commit behind it; the default), or {@code "incomplete"}.
   */
  public static final String ASYNC_COMMITS = "async_commits";

  /**
   * The word for the operator's word that all servers share one archive of the log, so that no two standbys promoted apart
   * take the same timeline: {@code true}; for stores without the table of epochs.
   */
  public static final String UNIQUE_TIMELINES = "unique_timelines";

  /**
   * The word for the operator's word that a server that crashed is rebuilt before it serves readers: {@code true}; then servers
   * with {@code fsync} or {@code full_page_writes} off are taken (SHIM-45).
   */
  public static final String RELAXED_DURABILITY = "relaxed_durability";

  private static final long PROBE_MS = 1000;

  private AntipodePostgres() {}

  /** {@link #wrap(DataSource, StoreOptions)} with the options as they are by default. */
  public static DataSource wrap(DataSource dataSource, String store) {
    return wrap(dataSource, StoreOptions.named(store));
  }

  /**
   * A DataSource whose connections record under the store's name. It shares the connections of the one passed in, which
   * stays plain, and has its interfaces; {@code unwrap} gives what is inside.
   *
   * @throws ConfigurationException for options that cannot be
   * @throws UnfitStoreException for a server whose positions prove nothing (a pooler in transaction mode, {@code wal_level
   *     = minimal}, {@code fsync = off}); the message has the cure. A server that does not answer now is no error
   */
  public static DataSource wrap(DataSource dataSource, StoreOptions options) {
    checked(options);
    DataSource plain = (DataSource) Proxies.plain(dataSource);
    JoinedClient joined = new JoinedClient(join(options, plain), options, plain);
    joined.tryOut();
    return RecordingDataSource.of(plain, options.name(), joined::record);
  }

  /**
   * One connection that records; for applications that hold their own.
   *
   * @throws SQLException where it is lost, or no connection of the PostgreSQL JDBC driver
   * @throws ConfigurationException where it is wrapped under another store's name
   */
  public static Connection wrap(Connection connection, StoreOptions options) throws SQLException {
    checked(options);
    return new JoinedClient(join(options, null), options, null).record((Connection) Proxies.plain(connection));
  }

  /** The store for which a wrapped DataSource records, also where others were put round it; empty for a plain one. */
  public static Optional<String> storeOf(DataSource dataSource) {
    return Optional.ofNullable(RecordingDataSource.storeOf(dataSource));
  }

  /** This process waits for a store's servers, and never reads or writes it. */
  public static Store register(StoreOptions options) {
    return Shims.join(options, PostgresqlShim::new);
  }

  private static void checked(StoreOptions options) {
    Rest rest = options.restOr(null);
    if (rest != null && rest != Rest.NATIVE) {
      throw new ConfigurationException("AP501", "rest(" + rest + "): want NATIVE (a column), or nothing");
    }
    Object asynchronous = options.extra(ASYNC_COMMITS);
    if (asynchronous != null && !"flush".equals(asynchronous) && !"incomplete".equals(asynchronous)) {
      throw new ConfigurationException("AP501", "async_commits=" + asynchronous + ": want flush or incomplete");
    }
  }

  private static RegisteredStore join(StoreOptions options, DataSource plain) {
    Properties credentials = plain == null ? new Properties() : Credentials.of(plain);
    return Shims.join(options, () -> {
      PostgresqlShim shim = new PostgresqlShim();
      shim.credentials(credentials);
      return shim;
    });
  }

  /** The very server that a connection has reached. */
  static Target targetOf(BaseConnection physical, Binding binding) {
    return Target.of(physical, binding.credentials(), null);
  }

  /** One wrapped client. */
  private static final class JoinedClient {
    private final RegisteredStore store;
    private final StoreOptions options;
    private final DataSource plain;
    private final Binding binding;
    private final List<DataSource> parts;
    private final PoolConnections held;
    private final MetConnections met;

    private volatile ServerSource expected; // null for a connection, and while it is wrapped
    private volatile boolean isReached; // one of its connections has told where it leads

    /** By address: why positions of a server prove nothing. */
    private final Map<String, String> unfit = new ConcurrentHashMap<>();

    JoinedClient(RegisteredStore store, StoreOptions options, DataSource plain) {
      this.store = store;
      this.options = options;
      this.plain = plain;
      this.parts = plain == null ? List.of() : Parts.of(plain);
      this.binding = new Binding(store, options, plain, parts.size() == 1);
      this.held = new PoolConnections(parts);
      this.met = new MetConnections(physical -> reach((BaseConnection) physical));
    }

    Connection record(Connection connection) throws SQLException {
      BaseConnection physical = physical(connection);
      return RecordingConnection.of(
          connection, new Flow(binding, physical, reached(physical), isPlainChain(connection)));
    }

    private static BaseConnection physical(Connection connection) {
      BaseConnection physical = Proxies.physical(connection);
      if (physical == null) {
        throw new ConfigurationException(
            "AP501",
            "wrap() takes DataSources of the PostgreSQL JDBC driver, not of " + connection.getClass().getName());
      }
      return physical;
    }

    private void reach(BaseConnection physical) {
      binding.reach(Target.of(physical, binding.credentials(), plain), physical);
    }

    /** Takes the server that a connection has reached; returns why its positions prove nothing, empty where they do. */
    private String reached(BaseConnection physical) throws SQLException {
      KnownServer.of(physical).ongoing(store);
      PostgresqlShim shim = (PostgresqlShim) store.shim();
      Target target = Target.of(physical, binding.credentials(), plain);
      if (isReached) {
        binding.reach(target, physical);
      } else { // the wrap's own
        store.useServer(options, target, target.address());
      }
      String why = unfit.get(target.address());
      if (why == null) {
        boolean isOne = parts.size() == 1 && Target.anyOf(binding.credentials(), plain).isEmpty();
        if (expected != null && expected.named().isEmpty() && isOne) {
          expected.found(List.of(target));
        }
        String place = physical.getQueryExecutor().getUser() + "@" + target.address();
        why = shim.fitness.get(place);
        if (why == null) {
          why = Fitness.unfit(store.name(), target, physical, shim.isRelaxed());
          shim.fitness.put(place, why);
        }
        if (!why.isEmpty() && options.onUnfit() == OnUnfit.RAISE) {
          throw new UnfitStoreException(why + ". StoreOptions.onUnfit(UNPROVEN) lets the service start");
        }
        binding.unsure(shim.unsureAt(place, physical));
        unfit.put(target.address(), why);
      }
      isReached = true;
      return why;
    }

    /** Whether COMMIT and close go on as they are to the driver: its own connections, and HikariCP's. */
    private static boolean isPlainChain(Connection connection) {
      String name = connection.getClass().getName();
      return name.startsWith("org.postgresql.") || name.startsWith("com.zaxxer.hikari.");
    }

    /** Asks a server's fitness now; one that does not answer within a second is asked at the first connection. */
    void tryOut() {
      FutureTask<List<Target>> task = new FutureTask<>(this::connected);
      Thread thread = new Thread(null, task, "antipode-wrap-" + store.name(), 0, false);
      thread.setDaemon(true);
      thread.start();
      List<Target> found = List.of();
      try {
        found = task.get(PROBE_MS, TimeUnit.MILLISECONDS);
      } catch (TimeoutException error) {
        later("no answer within " + PROBE_MS + " ms");
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      } catch (ExecutionException error) {
        if (error.getCause() instanceof RuntimeException wrong) {
          throw wrong;
        }
        later(String.valueOf(error.getCause().getMessage()));
      }
      expect(found);
    }

    /** Until its server is known, and where it leads elsewhere than it did, no barrier passes on the others (BAR-52). */
    private void expect(List<Target> found) {
      String words = plain.getClass().getSimpleName();
      expected = store.expectServer(
          options, words, this, client -> ((JoinedClient) client).found(),
          client -> ((JoinedClient) client).binding.leads().look());
      expected.watchHeld(client -> ((JoinedClient) client).met.meetAll(((JoinedClient) client).held.all()));
      expected.found(found);
    }

    private void later(String words) {
      Logs.info(
          "AP507",
          "probe " + store.name(),
          store.name() + ": its server does not answer yet (" + words + "); its rights are asked when it does");
    }

    private List<Target> connected() throws SQLException {
      List<Target> targets = new ArrayList<>();
      for (DataSource part : parts) {
        try (Connection connection = part.getConnection()) {
          BaseConnection physical = physical(connection);
          reached(physical);
          targets.add(targetOf(physical, binding));
        }
        targets.addAll(Target.anyOf(binding.credentials(Credentials.of(part)), plain));
      }
      if (held.areOfPool() && parts.size() == 1 && binding.leads().namesServer()) { // it may have opened that one before
        targets.addAll(Target.ofSettings(binding.credentials(), plain, (int) PROBE_MS));
      }
      return targets;
    }

    /** A pool may hand out a connection that it opened before its settings were changed, so these are asked then. */
    private List<Target> found() {
      try {
        Properties settings = binding.leads().words();
        boolean isNamed = parts.size() == 1 && isReached && settings.getProperty(PGProperty.PG_HOST.getName()) != null;
        return isNamed ? Target.ofSettings(binding.credentials(), plain, (int) PROBE_MS) : connected();
      } catch (SQLException error) {
        throw new IllegalStateException(error.getMessage(), error);
      }
    }
  }
}
