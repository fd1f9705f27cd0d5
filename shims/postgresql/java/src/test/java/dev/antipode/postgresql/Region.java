package dev.antipode.postgresql;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.StoreOptions;
import dev.antipode.lab.Lab;
import dev.antipode.lab.Repository;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/** A lab of PostgreSQL with a table of posts, prepared by `antipode init`. */
final class Region implements AutoCloseable {
  static final String KIND = "postgresql";
  static final String INSERT = "INSERT INTO posts (key, value) VALUES (?, ?)";
  static final String UPSERT = INSERT + " ON CONFLICT (key) DO UPDATE SET value = excluded.value";

  private final Lab lab;

  Region(Lab.Builder wanted) {
    lab = wanted.up();
    try {
      prepare();
    } catch (SQLException | RuntimeException error) {
      lab.close();
      throw new IllegalStateException(error);
    }
  }

  private void prepare() throws SQLException {
    try (Connection connection = plain("a").getConnection(); Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE posts (key text PRIMARY KEY, value text NOT NULL)");
    }
    String url = url("a", "postgres");
    run("init", "posts", "--at", url, "--user", "app", "--set", "table=posts", "--run", "--yes");
    lab.servers(KIND).keySet().stream().filter(name -> !name.equals("a")).forEach(this::waitCaughtUp);
  }

  /** Runs Antipode's command line. */
  static void run(String... words) {
    Path antipode = Repository.root().resolve(".venv/bin/antipode");
    List<String> command = new java.util.ArrayList<>(List.of(antipode.toString()));
    command.addAll(List.of(words));
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      process.getOutputStream().close();
      String said = new String(process.getInputStream().readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
      if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
        throw new IllegalStateException(said);
      }
    } catch (IOException | InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  Lab lab() {
    return lab;
  }

  void waitCaughtUp(String server) {
    lab.verb(KIND, "wait_caught_up", server);
  }

  int port(String server) {
    return lab.server(KIND, server).port();
  }

  /** The part of a server's address that no other one has. */
  String place(String server) {
    return ":" + port(server) + "/";
  }

  String url(String server, String user) {
    return "postgresql://" + user + "@127.0.0.1:" + port(server) + "/app";
  }

  /** As people write it for JDBC, without a user: that of the wrapped client is taken. */
  String jdbc(String server) {
    return "jdbc:postgresql://127.0.0.1:" + port(server) + "/app";
  }

  PGSimpleDataSource plain(String server) {
    return plain(server, "app");
  }

  PGSimpleDataSource plain(String server, String user) {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setUrl(jdbc(server));
    source.setUser(user);
    source.setConnectTimeout(10);
    return source;
  }

  DataSource wrap(String server, StoreOptions options) {
    return AntipodePostgres.wrap(plain(server), options);
  }

  /** What a server has now, without Antipode; null where it has nothing. */
  String shows(String server, String key) {
    try (Connection connection = plain(server).getConnection()) {
      return shows(connection, key);
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  static String shows(Connection connection, String key) throws SQLException {
    try (PreparedStatement ask = connection.prepareStatement("SELECT value FROM posts WHERE key = ?")) {
      ask.setString(1, key);
      try (ResultSet rows = ask.executeQuery()) {
        return rows.next() ? rows.getString(1) : null;
      }
    }
  }

  static int update(Connection connection, String text, Object... values) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      for (int i = 0; i < values.length; i++) {
        statement.setObject(i + 1, values[i]);
      }
      return statement.executeUpdate();
    }
  }

  /** What is done with a connection. */
  @FunctionalInterface
  interface Work {
    void with(Connection connection) throws Exception;
  }

  /** Does something on a connection in a scope of its own; the lineage that it left. */
  static Lineage inScope(DataSource source, Work work) {
    try (LineageScope opened = Antipode.scope(); Connection connection = source.getConnection()) {
      work.with(connection);
      return opened.lineage();
    } catch (RuntimeException error) {
      throw error;
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  static void until(BooleanSupplier condition, String what) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("in vain: " + what);
      }
      try {
        Thread.sleep(5);
      } catch (InterruptedException error) {
        throw new AssertionError(error);
      }
    }
  }


  @Override
  public void close() {
    lab.close();
  }
}
