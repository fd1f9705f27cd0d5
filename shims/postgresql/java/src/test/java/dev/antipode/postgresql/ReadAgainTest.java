package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.testing.Recorded;
import java.io.StringReader;
import java.nio.file.Path;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.jdbc.PgConnection;
import org.postgresql.util.PGobject;

/** Which reads of a standby that lags dry-run confirms as stale, by reads of its own (REC-22, REC-23). */
class ReadAgainTest extends QuietRegion {
  private static final Duration LAG = Duration.ofSeconds(3);
  private static final String BY_KEY = "SELECT value FROM posts WHERE key = ?";

  @TempDir
  Path folder;

  private Recorded recorded;
  private String key;

  @BeforeEach
  void dryRun() {
    key = newKey();
    recorded = new Recorded(folder);
  }

  @AfterEach
  void linksAreAsBefore() {
    region().lab().lag(Region.KIND, "b1", Duration.ofMillis(3));
  }

  private static void prepare(String... statements) throws SQLException {
    try (Connection connection = region().plain("a", "postgres").getConnection();
        Statement statement = connection.createStatement()) {
      for (String each : statements) {
        statement.execute(each);
      }
    }
    region().waitCaughtUp("b1");
  }

  /** What an application does with a connection to the standby, in a scope that has just written. */
  private void behind(DataSource standby, Region.Work reads) throws SQLException {
    region().lab().lag(Region.KIND, "b1", LAG);
    try (LineageScope scope = Antipode.scope(); Connection connection = standby.getConnection()) {
      try (Connection writing = source.getConnection()) {
        Region.update(writing, Region.UPSERT, key, "v");
      }
      reads.with(connection);
      assertThat(scope.isClosed()).isFalse();
    } catch (RuntimeException | SQLException error) {
      throw error;
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private DataSource standby() {
    return region().wrap("b1", options());
  }

  private void assertFound(int stale, int behind) {
    recorded.findings(stale + behind);
    recorded.settled();
    assertThat(List.of(recorded.count("stale"), recorded.count("behind")))
        .as(recorded.lines("stale", "behind").toString()).containsExactly((long) stale, (long) behind);
  }

  private static void read(Connection connection, String text) throws SQLException {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
      while (rows.next()) {
        assertThat(rows.getString(1)).isNotNull();
      }
    }
  }

  /** What is set on a statement. */
  @FunctionalInterface
  private interface Set {
    void on(PreparedStatement statement) throws SQLException;
  }

  private static void read(Connection connection, String text, Set set) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      set.on(statement);
      statement.executeQuery().close();
    }
  }

  /** Rows that change are stale; those of another table, and what was there all the time, are not. */
  @Test
  void onlyWhatChangesIsStale() throws SQLException {
    prepare("CREATE TABLE IF NOT EXISTS quiet (id integer)", "GRANT SELECT ON quiet TO app");
    behind(standby(), connection -> {
      read(connection, "SELECT value FROM posts WHERE key = '" + key + "'");
      read(connection, "SELECT count(*) FROM quiet");
      read(connection, "SELECT value FROM posts WHERE key = 'nobody'");
    });
    assertFound(1, 2);
    assertThat(recorded.lines("stale")).singleElement().asString().contains("\"confirmed\":\"repeat\"").doesNotContain(key);
  }

  /** Parameters are sent as they were, whatever becomes of the application's objects. */
  @Test
  void preparedStatements() throws SQLException {
    String typed = "SELECT value FROM posts WHERE key = ? AND ? > 1 AND ? = ? AND ? < ? AND ? IS NULL";
    behind(standby(), connection -> {
      read(connection, BY_KEY, statement -> statement.setString(1, key));
      read(connection, BY_KEY, statement -> {
        statement.setString(1, "another");
        statement.setString(1, key);
      });
      byte[] octets = {1, 2};
      Timestamp early = new Timestamp(0);
      PGobject number = new PGobject();
      number.setType("int4");
      number.setValue("2");
      read(connection, typed, statement -> {
        statement.setObject(1, key);
        statement.setObject(2, number);
        statement.setBytes(3, octets);
        statement.setBytes(4, octets.clone());
        statement.setTimestamp(5, early);
        statement.setTimestamp(6, new Timestamp(1000));
        statement.setNull(7, java.sql.Types.INTEGER);
      });
      octets[0] = 9;
      early.setTime(5000);
      number.setValue("0");
      read(connection, "SELECT value FROM posts WHERE key = ANY (?)", statement -> statement.setObject(1, new String[] {key}));
      read(connection, BY_KEY, statement -> statement.setString(1, "nobody"));
    });
    assertFound(4, 1);
  }

  /** REC-23: what cannot be known, or is not all of what its text would give, is not sent again. */
  @Test
  void whatIsNotSentAgain() throws SQLException {
    behind(standby(), connection -> {
      read(connection, BY_KEY, statement -> statement.setCharacterStream(1, new StringReader(key)));
      read(connection, "SELECT value FROM posts WHERE key = ANY (?)", statement ->
          statement.setArray(1, connection.createArrayOf("text", new String[] {key})));
      read(connection, BY_KEY, statement -> statement.setString(1, key + "x".repeat(Parameters.MOST_OCTETS)));
      read(connection, BY_KEY, statement -> {
        statement.setString(1, key);
        statement.setMaxRows(1);
      });
      try (PreparedStatement updatable =
          connection.prepareStatement(BY_KEY, ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
        updatable.setString(1, key);
        updatable.executeQuery().close();
      }
      try (CallableStatement call = connection.prepareCall(BY_KEY)) {
        call.setString(1, key);
        call.execute();
      }
      read(connection, "SELECT value, now() FROM posts WHERE key = '" + key + "'");
      read(connection, "SELECT value FROM posts LIMIT 100");
    });
    assertFound(0, 8);
  }

  /** What differs by itself differs between the last two as well. */
  @Test
  void aViewThatCallsAClock() throws SQLException {
    prepare(
        "CREATE OR REPLACE VIEW ticking AS SELECT key, value, clock_timestamp() AS at FROM posts",
        "GRANT SELECT ON ticking TO app");
    String old = newKey();
    write(old);
    region().waitCaughtUp("b1");
    behind(standby(), connection -> {
      read(connection, "SELECT * FROM ticking WHERE key = '" + old + "'");
      read(connection, "SELECT * FROM ticking WHERE key = '" + key + "'");
      read(connection, "SELECT value FROM ticking WHERE key = '" + key + "'");
    });
    assertFound(1, 2);
  }

  /** REC-23: its session is not as it was opened any more; what holds for a transaction is over with it. */
  @Test
  void whereTheApplicationHasChangedItsSession() throws SQLException {
    String text = "SELECT value FROM posts WHERE key = '" + key + "'";
    behind(standby(), connection -> {
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.execute("SET LOCAL work_mem = '8MB'");
      }
      read(connection, text); // behind
      connection.commit();
      read(connection, text); // stale
      connection.rollback();
      try (Statement statement = connection.createStatement()) {
        statement.execute("SET search_path = public");
      }
      connection.commit();
      read(connection, text); // behind
      Connection physical = connection.unwrap(PgConnection.class);
      read(AntipodePostgres.wrap(physical, options()), text); // behind: the same session, by another wrap
      try (Connection other = standby().getConnection()) {
        other.setSchema("public");
        read(other, text); // behind
      }
    });
    assertFound(1, 4);
  }

  /** The tables of the URL's schema, not of the user's own. */
  @Test
  void theSessionIsAsTheUrlSays() throws SQLException {
    prepare(
        "CREATE SCHEMA IF NOT EXISTS tenant", "GRANT USAGE ON SCHEMA tenant TO app",
        "CREATE TABLE IF NOT EXISTS tenant.posts (key text, value text)", "GRANT SELECT ON tenant.posts TO app");
    PGSimpleDataSource other = region().plain("b1");
    other.setCurrentSchema("tenant");
    PGSimpleDataSource same = region().plain("b1");
    same.setOptions("-c search_path=tenant,public");
    HikariConfig config = new HikariConfig();
    config.setDataSource(region().plain("b1"));
    config.setConnectionInitSql("SET search_path = public");
    String text = "SELECT value FROM posts WHERE key = '" + key + "'";
    DataSource first = AntipodePostgres.wrap(other, options());
    DataSource second = AntipodePostgres.wrap(same, options());
    try (HikariDataSource pool = new HikariDataSource(config)) {
      DataSource third = AntipodePostgres.wrap(pool, options());
      behind(first, connection -> {
        read(connection, text); // behind, for its table never changes
        try (Connection more = second.getConnection(); Connection pooled = third.getConnection()) {
          read(more, text); // behind: likewise
          read(more, "SELECT value FROM public.posts WHERE key = '" + key + "'"); // stale
          read(pooled, text); // behind: nobody knows what it runs
        }
      });
      assertFound(1, 3);
    }
  }

  /** REC-13: where the shim gets no connection of its own, the application has its rows, and nothing is confirmed. */
  @Test
  void whereTheOwnConnectionIsRefused() throws SQLException {
    prepare(
        "DROP ROLE IF EXISTS lonely", "CREATE ROLE lonely LOGIN CONNECTION LIMIT 1",
        "GRANT SELECT ON posts TO lonely", "GRANT USAGE ON SCHEMA antipode TO lonely");
    String url = region().url("b1", "app");
    DataSource lonely = AntipodePostgres.wrap(region().plain("b1", "lonely"), options().replicas(url));
    behind(lonely, connection -> {
      read(connection, "SELECT value FROM posts WHERE key = '" + key + "'");
      assertFound(0, 1); // while the application has its only connection
    });
  }

  /** REC-14: a result that is too large is not compared, and not kept. */
  @Test
  void moreRowsThanAreCompared() throws SQLException {
    prepare(
        "CREATE TABLE IF NOT EXISTS many AS SELECT generate_series(0, " + ReadAgain.MOST_ROWS + ") AS id",
        "GRANT SELECT ON many TO app");
    behind(standby(), connection ->
        read(connection, "SELECT id FROM many WHERE NOT EXISTS (SELECT 1 FROM posts WHERE key = '" + key + "')"));
    assertFound(0, 1);
  }
}
