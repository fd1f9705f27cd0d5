package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.Rest;
import dev.antipode.WriteId;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.largeobject.LargeObjectManager;

/** Reads that wait, and that say what they depend on (SHIM-12, SHIM-13, BAR-50, BAR-51). */
class ReadingTest extends QuietRegion {
  private static final Duration LAG = Duration.ofMillis(3);

  @AfterEach
  void linksAreAsBefore() {
    region().lab().lag(Region.KIND, "b1", LAG);
    region().lab().heal();
  }

  @Test
  void aPlainReadAddsNothing() {
    DataSource standby = region().wrap("b1", options());
    assertNothing(Region.inScope(standby, connection -> Region.shows(connection, "nobody")));
  }

  @Test
  void whatIsReadDependsOnTheServersPosition() throws SQLException {
    String key = newKey();
    Lineage written = write(key);
    Antipode.barrier(BarrierOptions.defaults().lineage(written).timeout(Duration.ofSeconds(20)));
    DataSource standby = region().wrap("b1", options());
    for (boolean autocommit : new boolean[] {true, false}) {
      try (LineageScope scope = Antipode.scope(); Connection connection = standby.getConnection()) {
        connection.setAutoCommit(autocommit);
        try (Reading seen = Antipode.reading()) {
          assertThat(Region.shows(connection, key)).isEqualTo("v");
          assertThat(written.isCoveredBy(seen.lineage())).as(seen.lineage() + " of " + written).isTrue();
          assertThat(seen.lineage().isComplete()).isTrue();
        }
        assertNothing(scope.lineage());
        if (!autocommit) {
          connection.commit();
        }
      }
    }
    // A primary too, in the midst of a transaction that goes on.
    String next = newKey();
    waitsFor(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, next, "v");
      try (Reading seen = Antipode.reading()) {
        assertThat(Region.shows(connection, key)).isEqualTo("v");
        assertThat(seen.lineage().ofStore(STORE)).hasSize(1);
      }
      connection.commit();
    }));
    assertThat(shows("b1", next)).isEqualTo("v");
  }

  private static void waitsFor(Lineage lineage) {
    Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(20)));
  }

  @Test
  void waitOnReadWaits() throws SQLException {
    DataSource standby = region().wrap("b1", options().waitOnRead(true).timeout(Duration.ofSeconds(20)));
    region().lab().lag(Region.KIND, "b1", Duration.ofMillis(200));
    String key = newKey();
    Lineage written = write(key);
    try (LineageScope scope = Antipode.scope(written); Connection connection = standby.getConnection()) {
      assertThat(Region.shows(connection, key)).isEqualTo("v");
      assertThat(scope.lineage()).isEqualTo(written);
    }
  }

  /** What a batch writes it may have read before: INSERT … SELECT. */
  @Test
  void aBatchThatReadsWaits_SHIM_44() throws SQLException {
    DataSource waiting = region().wrap("a", options().timeout(Duration.ofMillis(300)));
    Ordered now = (Ordered) write(newKey()).ids().get(0).version();
    Lineage ahead = Lineage.of(WriteId.position(STORE, now.epoch(), now.counter() + (1L << 30)));
    try (Reading seen = Antipode.reading(ahead);
        Connection connection = waiting.getConnection();
        Statement statement = connection.createStatement()) {
      statement.addBatch("INSERT INTO posts VALUES ('" + newKey() + "', 'v')");
      assertThat(statement.executeBatch()).containsExactly(1);
      statement.addBatch("INSERT INTO posts SELECT key || 'x', value FROM posts WHERE false");
      assertThatThrownBy(statement::executeBatch).isInstanceOf(BarrierTimeoutException.class);
      assertThat(seen.after()).contains(ahead);
    }
  }

  /** BAR-50: a server is told by when it was started, whatever clock the application's session shows. */
  @Test
  void aSessionWithATimeZoneOfItsOwnWaits() throws SQLException {
    DataSource standby = region().wrap("b1", options().waitOnRead(true).timeout(Duration.ofSeconds(20)));
    String key = newKey();
    Lineage written = write(key);
    try (LineageScope scope = Antipode.scope(written);
        Connection connection = standby.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("SET TIME ZONE 'Asia/Tokyo'");
      assertThat(Region.shows(connection, key)).isEqualTo("v");
      assertThat(scope.isClosed()).isFalse();
    }
  }

  @Test
  void readingAfterALineageWaitsAndGivesUpInTime() throws SQLException {
    DataSource standby = region().wrap("b1", options().timeout(Duration.ofMillis(300)));
    waitsFor(write(newKey()));
    region().lab().partition(Region.KIND, "b1");
    Lineage written = write(newKey());
    try (Connection connection = standby.getConnection(); Reading seen = Antipode.reading(written)) {
      long began = System.nanoTime();
      assertThatThrownBy(() -> Region.shows(connection, "any")).isInstanceOf(BarrierException.class)
          .hasMessageContaining(STORE);
      assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(5));
      assertThat(seen.after()).contains(written);
    }
  }

  /** BAR-50: a transaction that keeps its snapshot cannot see what comes later, however long it waits. */
  @Test
  void aSnapshotThatIsKeptIsToldAtOnce() throws SQLException {
    DataSource standby = region().wrap("b1", options().waitOnRead(true).timeout(Duration.ofSeconds(20)));
    try (LineageScope scope = Antipode.scope(); Connection connection = standby.getConnection()) {
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      connection.setAutoCommit(false);
      Region.shows(connection, "nobody");
      Lineage written = write(newKey());
      scope.transfer(written);
      assertThatThrownBy(() -> Region.shows(connection, "any")).isInstanceOf(BarrierException.class)
          .hasMessageContaining("snapshot");
      connection.rollback();
    }
  }

  /** EPOCH-31: a commit can be seen before it counts as replayed; until then it is only known to be received. */
  @Test
  void aReadAtAStandbyCoversWhatItMayHaveBegunToReplay() throws SQLException {
    DataSource standby = region().wrap("b1", options());
    try (Connection administrator = region().plain("b1", "postgres").getConnection();
        Connection primary = region().plain("a").getConnection()) {
      answer(administrator, "SELECT pg_wal_replay_pause()");
      try {
        Lineage written = write(newKey());
        String flushed = answer(primary, "SELECT pg_current_wal_flush_lsn()");
        String isReceived = "SELECT pg_last_wal_receive_lsn() >= '" + flushed + "'";
        Region.until(() -> "t".equals(answer(administrator, isReceived)), "it is received");
        try (Connection connection = standby.getConnection(); Reading seen = Antipode.reading()) {
          Region.shows(connection, "nobody");
          assertThat(written.isCoveredBy(seen.lineage())).as(seen.lineage() + " of " + written).isTrue();
        }
      } finally {
        answer(administrator, "SELECT pg_wal_replay_resume()");
      }
    }
  }

  private static String answer(Connection connection, String question) {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(question)) {
      rows.next();
      return rows.getString(1);
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  /** PROP-21: what keeps ours from being told is the write's own error, and has its words. */
  @Test
  void withoutItsLineageARowIsNotWritten() throws SQLException {
    DataSource resting = region().wrap("a", options().rest(Rest.NATIVE));
    String key = newKey();
    String procedure = "DO $$ BEGIN INSERT INTO posts VALUES ('" + key + "', 'v'); END $$";
    try (Connection administrator = region().plain("a", "postgres").getConnection();
        Statement rights = administrator.createStatement();
        LineageScope scope = Antipode.scope(Lineage.deserialize("1~elsewhere.key..7"));
        Connection connection = resting.getConnection()) {
      String setting = " EXECUTE ON FUNCTION set_config(text, text, boolean) ";
      rights.execute("REVOKE" + setting + "FROM PUBLIC");
      try {
        for (boolean autocommit : new boolean[] {true, false}) {
          connection.setAutoCommit(autocommit);
          assertRefused(() -> Region.update(connection, Region.INSERT, key, "v"));
          if (!autocommit) {
            connection.rollback();
          }
          assertRefused(() -> Region.update(connection, procedure));
          if (!autocommit) {
            connection.rollback();
          }
        }
        connection.setAutoCommit(true);
        assertRefused(() -> connection.unwrap(PGConnection.class).getCopyAPI()
            .copyIn("COPY posts (key, value) FROM STDIN", new StringReader(key + "\tv\n")));
      } finally {
        rights.execute("GRANT" + setting + "TO PUBLIC");
      }
      assertNothing(scope.lineage());
      assertThat(scope.pendingStores()).isEmpty();
    }
    assertThat(shows("a", key)).isNull();
  }

  private static void assertRefused(ThrowableAssert.ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(SQLException.class).hasMessageContaining("set_config")
        .extracting(error -> ((SQLException) error).getSQLState()).isEqualTo("42501");
  }

  /** PROP-21: the server forgets at a ROLLBACK TO what it was told behind the savepoint. */
  @ParameterizedTest
  @ValueSource(strings = {"ROLLBACK TO here", "ROLLBACK TO here; SELECT 1", "RESET ALL", "", "an error"})
  void whatTakesTheSettingBackTakesNoLineageFromTheNextRow(String back) throws SQLException {
    DataSource resting = region().wrap("a", options().rest(Rest.NATIVE));
    Lineage other = Lineage.deserialize("1~elsewhere.key..7");
    String next = newKey();
    try (LineageScope scope = Antipode.scope(other); Connection connection = resting.getConnection()) {
      connection.setAutoCommit(false);
      Savepoint here = connection.setSavepoint("here");
      Region.update(connection, Region.INSERT, newKey(), "v");
      if (back.equals("an error")) {
        assertThatThrownBy(() -> Region.update(connection, "UPDATE posts SET value = (1/0)::text"))
            .isInstanceOf(SQLException.class);
      }
      if (back.isEmpty() || back.equals("an error")) {
        connection.rollback(here);
      } else {
        try (Statement statement = connection.createStatement()) {
          statement.execute(back);
        }
      }
      Region.update(connection, Region.INSERT, next, "v");
      try (Statement statement = connection.createStatement();
          ResultSet rows = statement.executeQuery("SELECT antipode FROM posts WHERE key = '" + next + "'")) {
        rows.next();
        assertThat(rows.getString(1)).isEqualTo(other.serialize());
      }
      connection.rollback();
      assertThat(scope.lineage()).isEqualTo(other);
    }
  }

  /** SHIM-44: also past statements. */
  @Test
  void copiesAndLargeObjectsWaitFirst() throws SQLException {
    DataSource standby = region().wrap("b1", options().waitOnRead(true).timeout(Duration.ofSeconds(60)));
    region().lab().lag(Region.KIND, "b1", Duration.ofMillis(200));
    String key = newKey();
    Lineage written = write(key);
    try (LineageScope scope = Antipode.scope(written); Connection connection = standby.getConnection()) {
      assertThat(copied(connection, key)).contains("v");
    }
    long[] id = new long[1];
    Lineage large = Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      id[0] = connection.unwrap(PGConnection.class).getLargeObjectAPI().createLO();
      connection.commit();
    });
    try (LineageScope scope = Antipode.scope(large); Connection connection = standby.getConnection()) {
      connection.setAutoCommit(false);
      connection.unwrap(PGConnection.class).getLargeObjectAPI().open(id[0], LargeObjectManager.READ).close();
      connection.commit();
    }
    try (Connection connection = standby.getConnection(); Reading seen = Antipode.reading()) {
      copied(connection, key);
      assertThat(seen.lineage().incomplete()).containsExactly(STORE);
    }
    DataSource primary = region().wrap("a", options().waitOnRead(true).timeout(Duration.ofMillis(200)));
    Ordered now = (Ordered) written.ofStore(STORE).get(0).version();
    Lineage ahead = Lineage.of(WriteId.position(STORE, now.epoch(), now.counter() + (1L << 40)));
    try (LineageScope scope = Antipode.scope(ahead);
        Connection connection = primary.getConnection();
        Statement statement = connection.createStatement()) {
      assertThatThrownBy(() -> statement.executeQuery("UPDATE posts SET value = 'w' RETURNING value"))
          .isInstanceOf(BarrierException.class);
      assertThat(scope.pending()).isEmpty();
    }
    assertThat(shows("a", key)).isEqualTo("v");
  }

  private static String copied(Connection connection, String key) throws SQLException {
    StringWriter found = new StringWriter();
    try {
      connection.unwrap(PGConnection.class).getCopyAPI()
          .copyOut("COPY (SELECT value FROM posts WHERE key = '" + key + "') TO STDOUT", found);
    } catch (IOException never) {
      throw new UncheckedIOException(never);
    }
    return found.toString();
  }

  /** BAR-46: after a failover the primary itself may have lost the write: then the fallback's read says so. */
  @Test
  void theFallbackIsJudgedToo() throws Exception {
    DataSource primary = region().wrap("a", options().timeout(Duration.ofMillis(300)));
    BarrierOptions brief = BarrierOptions.defaults().timeout(Duration.ofMillis(100));
    region().lab().partition(Region.KIND, "b1");
    String key = newKey();
    Lineage there = write(key);
    assertThat(Antipode.readOrFallback(() -> "standby", () -> at(primary, key), brief.lineage(there))).isEqualTo("v");
    Ordered now = (Ordered) there.ofStore(STORE).get(0).version();
    Lineage lost = Lineage.of(WriteId.position(STORE, now.epoch(), now.counter() + (1L << 40)));
    assertThatThrownBy(() -> Antipode.readOrFallback(() -> "standby", () -> at(primary, key), brief.lineage(lost)))
        .isInstanceOf(BarrierException.class);
  }

  private static String at(DataSource source, String key) throws SQLException {
    try (Connection connection = source.getConnection()) {
      return Region.shows(connection, key);
    }
  }
}
