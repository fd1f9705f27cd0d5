package dev.antipode.postgresql;

import dev.antipode.StoreOptions;
import dev.antipode.lab.Lab;
import dev.antipode.testing.FailoverDriver;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.random.RandomGenerator;
import javax.sql.DataSource;

/** One lab of a primary and two hot standbys, as the failover fuzzer drives it (EPOCH-27). */
final class PostgresqlDriver implements FailoverDriver {
  private static final List<String> NAMES = List.of("a", "b1", "b2");

  private final Random chance;
  private final Region region;
  private final Map<String, DataSource> sources = new HashMap<>();
  private final Map<String, Connection> writers = new HashMap<>();
  private final Map<String, Connection> looking = new ConcurrentHashMap<>(); // by thread and server

  PostgresqlDriver(long seed) {
    chance = new Random(seed);
    region = new Region(Lab.of(Region.KIND).replicas(2).lag("2ms", "10ms"));
  }

  @Override
  public void begin() {
    StoreOptions options = StoreOptions.named(name()).replicas(NAMES.stream().map(region::jdbc).toList());
    NAMES.forEach(name -> sources.put(name, region.wrap(name, options)));
  }

  @Override
  public void close() {
    writers.values().forEach(PostgresqlDriver::quietly);
    looking.values().forEach(PostgresqlDriver::quietly);
    region.close();
  }

  private static void quietly(Connection connection) {
    try {
      connection.close();
    } catch (SQLException error) {
      // it is lost
    }
  }

  private Lab lab() {
    return region.lab();
  }

  @Override
  public List<String> servers() {
    return NAMES;
  }

  @Override
  public String primary() {
    return lab().primary(Region.KIND);
  }

  @Override
  public List<String> replicas() {
    return lab().servers(Region.KIND).values().stream()
        .filter(server -> server.role().equals("replica"))
        .map(server -> server.name())
        .toList();
  }

  @Override
  public String address(String server) {
    return region.place(server);
  }

  // Data

  private Connection writer(String server) throws SQLException {
    Connection found = writers.get(server);
    if (found == null || found.isClosed()) {
      found = sources.get(server).getConnection();
      if (chance.nextDouble() < 0.3) {
        found.createStatement().execute("SET synchronous_commit = off");
      }
      writers.put(server, found);
    }
    return found;
  }

  @Override
  public void write(String server, String key, String value) {
    SQLException last = null;
    for (int turn = 0; turn < 3; turn++) {
      Connection client = null;
      try {
        client = writer(server);
        if (chance.nextBoolean()) {
          Region.update(client, Region.INSERT, key, value);
          return;
        }
        client.setAutoCommit(false);
        client.createStatement().executeQuery("SELECT count(*) FROM posts");
        Region.update(client, Region.INSERT, key, value);
        client.commit();
        client.setAutoCommit(true);
        return;
      } catch (SQLException error) {
        // The server was started anew since this connection was used last: nothing was sent to it.
        last = error;
        try {
          if (client != null && !client.isClosed()) {
            break;
          }
        } catch (SQLException closed) {
          continue;
        }
      }
    }
    throw new AssertionError(server + " takes no writes", last);
  }

  @Override
  public ValueCheck shows(String server, String key, String value) {
    for (int turn = 0; turn < 2; turn++) {
      try {
        return value.equals(Region.shows(looking(server), key)) ? ValueCheck.YES : ValueCheck.NO;
      } catch (SQLException error) {
        // another connection
      }
    }
    return ValueCheck.UNKNOWN;
  }

  @Override
  public Object history(String server) {
    for (int turn = 0; turn < 2; turn++) {
      try (Statement statement = looking(server).createStatement();
          ResultSet rows = statement.executeQuery("SELECT pg_postmaster_start_time()::text")) {
        rows.next();
        return rows.getString(1);
      } catch (SQLException error) {
        // another connection
      }
    }
    return null;
  }

  /** This thread's plain connection to a server. */
  private Connection looking(String server) throws SQLException {
    String place = Thread.currentThread().getId() + " " + server;
    Connection found = looking.get(place);
    if (found == null || found.isClosed()) {
      found = region.plain(server).getConnection();
      looking.put(place, found);
    }
    return found;
  }

  @Override
  public void settleMarks() {
    // The ends of timelines are the server's own knowledge.
  }

  // Faults

  private void call(String verb, List<?> words, Map<String, ?> named) {
    lab().verb(Region.KIND, verb, words, named, () -> {});
  }

  @Override
  public void lag(String replica, int milliseconds) {
    lab().lag(Region.KIND, replica, Duration.ofMillis(milliseconds));
  }

  @Override
  public void cut(String replica, RandomGenerator how) {
    call("partition", List.of(replica), Map.of("mode", how.nextBoolean() ? "cut" : "silent"));
  }

  @Override
  public void heal(String replica, boolean wait) {
    call("heal", List.of(replica), Map.of("wait", wait));
  }

  @Override
  public void restartReplica(String replica, Runnable write, boolean wait) {
    if (chance.nextBoolean()) {
      lab().kill(Region.KIND, replica);
      write.run();
      call("restart", List.of(replica), Map.of("wait", wait));
    } else {
      write.run();
      call("restart", List.of(replica), Map.of("crash", true, "wait", wait));
    }
  }

  @Override
  public void promote(String replica, Runnable lost) {
    Map<String, Object> named = new HashMap<>(Map.of("wait", false));
    if (lost != null) {
      named.put("lose", "<callback>");
    }
    lab().verb(Region.KIND, "promote", List.of(replica), named, lost == null ? () -> {} : lost);
  }

  @Override
  public void rejoin(String server, boolean wait) {
    call("heal", List.of(), Map.of("wait", false));
    call("repoint", List.of(server, primary()), Map.of("wait", wait));
  }

  @Override
  public boolean mayCrashPrimary() {
    return true;
  }

  /** A crash of PostgreSQL loses nothing that was flushed: what was recorded has to be there again. */
  @Override
  public void crashPrimary(Runnable write) {
    write.run();
    call("restart", List.of(primary()), Map.of("crash", true, "wait", false));
  }

  @Override
  public void calm() {
    call("heal", List.of(), Map.of("wait", false));
    String primary = primary();
    for (String name : NAMES) {
      if (!name.equals(primary)) {
        lag(name, 0);
        if (!replicas().contains(name)) {
          lab().repoint(Region.KIND, name, primary);
        }
      }
    }
  }

  @Override
  public void waitCaughtUp() {
    replicas().forEach(region::waitCaughtUp);
  }
}
