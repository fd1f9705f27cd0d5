package dev.antipode.postgresql;

import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.lab.Lab;
import dev.antipode.lab.MovingAddress;
import dev.antipode.shim.Capabilities;
import dev.antipode.testing.StoreUnderTest;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import javax.sql.DataSource;
import org.postgresql.PGConnection;
import org.postgresql.ds.PGSimpleDataSource;

/** PostgreSQL as the conformance kit drives it: values are rows, each with the column `antipode` beside it. */
final class PostgresqlUnderTest extends StoreUnderTest implements AutoCloseable {
  private static final Map<String, Duration> LAGS = Map.of("b1", Duration.ofMillis(5), "b2", Duration.ofMillis(20));
  private static final List<String> SERVERS = List.of("a", "b1", "b2");

  private Region region = start();
  private final Map<String, DataSource> sources = new ConcurrentHashMap<>();
  private final Map<String, Connection> clients = new ConcurrentHashMap<>(); // by thread and server
  private final Map<String, Connection> looking = new ConcurrentHashMap<>();
  private final List<AutoCloseable> ending = new ArrayList<>();

  private static Region start() {
    return new Region(Lab.of(Region.KIND).replicas(2).lag("5ms", "20ms"));
  }

  @Override
  public Capabilities capabilities() {
    return new PostgresqlShim().capabilities();
  }

  @Override
  public String rightsCure() {
    return "antipode init";
  }

  @Override
  public String unfitCure() {
    return "wal_level";
  }

  private Lab lab() {
    return region.lab();
  }

  @Override
  public String primary() {
    return lab().primary(Region.KIND);
  }

  @Override
  public List<String> replicas() {
    return List.of("b1", "b2");
  }

  @Override
  public void begin() {
    StoreOptions options = StoreOptions.named(name())
        .replicas(region.jdbc("b1"), region.jdbc("b2"))
        .rest(Rest.NATIVE);
    SERVERS.forEach(name -> sources.put(name, region.wrap(name, options)));
  }

  @Override
  public void recover(boolean spoiled) {
    closeClients();
    for (AutoCloseable each : ending) {
      try {
        each.close();
      } catch (Exception lost) {
        // so it is closed
      }
    }
    ending.clear();
    looking.values().forEach(PostgresqlUnderTest::quietly);
    looking.clear();
    if (spoiled) {
      region.close();
      region = start();
      return;
    }
    LAGS.forEach((name, lag) -> lab().lag(Region.KIND, name, lag));
    lab().heal();
  }

  private void closeClients() {
    clients.values().forEach(PostgresqlUnderTest::quietly);
    clients.clear();
  }

  private static void quietly(Connection connection) {
    try {
      connection.close();
    } catch (SQLException error) {
      // it is lost
    }
  }

  @Override
  public void close() {
    region.close();
  }

  // Data

  /** What is done on a connection. */
  private interface Work<T> {
    T on(Connection connection) throws SQLException;
  }

  /** Works on this thread's wrapped connection to a server; on another one where that one turns out to be lost. */
  private <T> T with(String server, boolean again, Work<T> work) {
    String place = Thread.currentThread().getId() + " " + server;
    try {
      Connection client = clients.get(place);
      if (client == null || client.isClosed()) {
        client = sources.get(server).getConnection();
        clients.put(place, client);
      }
      try {
        return work.on(client);
      } catch (SQLException error) {
        if (!again || !client.isClosed()) {
          throw error;
        }
        return with(server, false, work);
      }
    } catch (SQLException error) {
      throw new IllegalStateException(error.getMessage(), error);
    }
  }

  @Override
  public void write(String key, String value) {
    with(primary(), false, client -> Region.update(client, Region.UPSERT, key, value));
  }

  @Override
  public String read(String key, String at) {
    return with(at, true, client -> {
      try (PreparedStatement ask = client.prepareStatement(
          "SELECT value, antipode FROM posts WHERE key = ?",
          ResultSet.TYPE_SCROLL_INSENSITIVE,
          ResultSet.CONCUR_READ_ONLY)) {
        ask.setString(1, key);
        try (ResultSet rows = ask.executeQuery()) {
          return rows.next() ? rows.getString(1) : null;
        }
      }
    });
  }

  @Override
  public String look(String key, String at) {
    for (int turn = 0; turn < 2; turn++) {
      try {
        Connection connection = looking.get(at);
        if (connection == null || connection.isClosed()) {
          connection = region.plain(at).getConnection();
          looking.put(at, connection);
        }
        synchronized (connection) {
          return Region.shows(connection, key);
        }
      } catch (SQLException error) {
        looking.remove(at);
      }
    }
    throw new AssertionError(at + " does not answer");
  }

  @Override
  public void delete(String key) {
    with(primary(), false, client -> Region.update(client, "DELETE FROM posts WHERE key = ?", key));
  }

  @Override
  public void rawWrite(String key, String value) {
    try (Connection connection = region.plain(primary()).getConnection()) {
      Region.update(connection, Region.UPSERT, key, value);
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  @Override
  public void writeNothing() {
    delete("never there");
  }

  @Override
  public void transaction(TransactionBody work) {
    with(primary(), false, client -> {
      client.setAutoCommit(false);
      try {
        work.run(new Open(client));
        client.commit();
      } catch (Throwable error) {
        client.rollback();
        throw error;
      } finally {
        client.setAutoCommit(true);
      }
      return null;
    });
  }

  private record Open(Connection client) implements Transaction {
    @Override
    public void read(String key) {
      try {
        Region.shows(client, key);
      } catch (SQLException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void write(String key, String value) {
      try {
        Region.update(client, Region.UPSERT, key, value);
      } catch (SQLException error) {
        throw new IllegalStateException(error);
      }
    }
  }

  /** Commits a text within a transaction of the client's, and rolls back what is open then. */
  private void committed(String key, String value, String commit) {
    with(primary(), false, client -> {
      client.setAutoCommit(false);
      try (Statement statement = client.createStatement()) {
        Region.update(client, Region.UPSERT, key, value);
        statement.execute(commit);
        client.rollback();
      } finally {
        client.setAutoCommit(true);
      }
      return null;
    });
  }

  @Override
  public Map<String, BiConsumer<String, String>> commitsInside() {
    return Map.of(
        "several statements", (key, value) -> committed(key, value, "COMMIT; BEGIN"),
        "COMMIT AND CHAIN", (key, value) -> committed(key, value, "COMMIT AND CHAIN"));
  }

  // More clients

  @Override
  public Object wrapClient(String server, List<String> names, boolean waitOnRead) {
    StoreOptions options = StoreOptions.named(name()).waitOnRead(waitOnRead);
    try {
      Connection client = region
          .wrap(server, names == null ? options : options.replicas(names.stream().map(region::jdbc).toList()))
          .getConnection();
      ending.add(client::close);
      return client;
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  @Override
  public Map<String, Function<String, Object>> reads(Object client) {
    try {
      asSuperuser("CREATE OR REPLACE FUNCTION value_of(wanted text) RETURNS text LANGUAGE sql"
          + " AS 'SELECT value FROM public.posts WHERE key = wanted'");
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
    return WaysToRead.of((Connection) client);
  }

  @Override
  public PastMoment pastMoment(Object client, String key) {
    return WaysToRead.cursor((Connection) client, key);
  }

  @Override
  public Consumer<String> listMoving(String server) {
    MovingAddress address = new MovingAddress(region.port(server));
    ending.add(address);
    AntipodePostgres.register(StoreOptions.named(name()).replicas("postgresql://app@127.0.0.1:" + address.port() + "/app"));
    return name -> address.lead(region.port(name));
  }

  /** A DataSource is asked for a connection when it is wrapped. */
  @Override
  public Object wrapUnused(String server) {
    return null;
  }

  // Links and servers

  @Override
  public void setLag(String replica, Duration lag) {
    lab().lag(Region.KIND, replica, lag);
  }

  @Override
  public void partition(String replica) {
    lab().partition(Region.KIND, replica);
  }

  @Override
  public void heal(String replica) {
    lab().healSoon(Region.KIND, replica);
  }

  @Override
  public void freeze(String server) {
    lab().freeze(Region.KIND, server);
  }

  @Override
  public void thaw(String server) {
    lab().thaw(Region.KIND, server);
  }

  @Override
  public void restart(String server) {
    closeClients(); // as a pool does that finds them lost
    lab().restart(Region.KIND, server);
  }

  @Override
  public void repoint(String replica, String source) {
    lab().repoint(Region.KIND, replica, source);
  }

  @Override
  public void promote(String replica, Runnable lost) {
    String old = primary();
    if (lost == null) {
      lab().promote(Region.KIND, replica);
    } else {
      lab().promoteLosing(Region.KIND, replica, lost);
    }
    if (replicas().contains(old)) {
      lab().verb(Region.KIND, "heal", List.of(), Map.of("wait", false), () -> {});
      lab().repoint(Region.KIND, old, replica);
    }
  }

  // Troubles

  @Override
  public void writeWithUnknownOutcome(String key, String value) {
    with(primary(), false, client -> {
      int pid = client.unwrap(PGConnection.class).getBackendPID();
      try (Connection other = region.plain(primary(), "postgres").getConnection();
          Statement locking = other.createStatement()) {
        other.setAutoCommit(false);
        locking.execute("LOCK TABLE posts IN EXCLUSIVE MODE");
        Thread cutting = new Thread(() -> cutOff(pid));
        cutting.start();
        try {
          return Region.update(client, Region.UPSERT, key, value);
        } finally {
          join(cutting);
          other.rollback();
        }
      }
    });
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  private void cutOff(int pid) {
    try (Connection connection = region.plain(primary(), "postgres").getConnection();
        Statement statement = connection.createStatement()) {
      until(() -> isWaiting(statement, pid), "the write waits for the lock");
      statement.execute("SELECT pg_terminate_backend(" + pid + ")");
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  private static boolean isWaiting(Statement statement, int pid) {
    try (ResultSet rows = statement.executeQuery(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = " + pid)) {
      return rows.next();
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  @Override
  public void writeRefused(String key) {
    with(primary(), false, client -> Region.update(client, "INSERT INTO posts (key) VALUES (?)", key));
  }

  @Override
  public void writeWithoutRights(String key, String value) {
    try {
      asSuperuser(
          "DROP ROLE IF EXISTS plain", "CREATE ROLE plain LOGIN", "GRANT SELECT, INSERT, UPDATE ON posts TO plain");
      try (Connection client = AntipodePostgres.wrap(region.plain(primary(), "plain"), name()).getConnection()) {
        Region.update(client, Region.UPSERT, key, value);
      } finally {
        asSuperuser("DROP OWNED BY plain", "DROP ROLE plain");
      }
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  private void asSuperuser(String... statements) throws SQLException {
    try (Connection connection = region.plain(primary(), "postgres").getConnection();
        Statement statement = connection.createStatement()) {
      for (String one : statements) {
        statement.execute(one);
      }
    }
  }

  @Override
  public void wrapUnfit() {
    Lab.Builder wanted = Lab.of(Region.KIND)
        .set("postgresql.config", "{\"wal_level\": \"minimal\", \"max_wal_senders\": \"0\"}")
        .set("postgresql.alone", "true");
    try (Lab alone = wanted.up()) {
      PGSimpleDataSource source = new PGSimpleDataSource();
      source.setUrl("jdbc:postgresql://127.0.0.1:" + alone.server(Region.KIND, "a").port() + "/app");
      source.setUser("app");
      AntipodePostgres.wrap(source, "alone");
    }
  }
}
