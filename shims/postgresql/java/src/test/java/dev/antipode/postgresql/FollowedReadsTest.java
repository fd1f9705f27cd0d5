package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.testing.DryRunRecording;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import shop.Reader;

/** Dry-run's records of reads of a standby that lags (REC). */
class FollowedReadsTest extends QuietRegion {
  @TempDir
  Path folder;

  private DryRunRecording recorded;

  @BeforeEach
  void dryRun() {
    region().lab().lag(Region.KIND, "b1", Duration.ofSeconds(3));
    recorded = new DryRunRecording(folder);
  }

  @AfterEach
  void linksAreAsBefore() {
    region().lab().lag(Region.KIND, "b1", Duration.ofMillis(3));
  }

  /** REC-6, REC-12, REC-13: also where a read would wait, which none does here. */
  @Test
  void readsOfAStandbyThatLagsAreFound() throws SQLException {
    String key = newKey();
    try (LineageScope scope = Antipode.scope();
        Connection connection =
            region().wrap("b1", options().waitOnRead(true).timeout(Duration.ofSeconds(60))).getConnection();
        Statement statement = connection.createStatement()) {
      try (Connection writing = source.getConnection()) {
        Region.update(writing, Region.INSERT, key, "v");
      }
      assertThat(Reader.value(connection, key)).isNull();
      statement.execute("SHOW server_version"); // reads no data
      assertThat(scope.isClosed()).isFalse();
    }
    String record = recorded.findings(1).get(0);
    assertThat(record)
        .contains("\"kind\":\"behind\"", "\"store\":\"" + STORE + "\",\"store_kind\":\"postgresql\"")
        .contains("\"site\":\"shop/Reader.java:", "\"wanted\":{\"epoch\":\"", "\"visible_after\":")
        .doesNotContain(key, "null", "confirmed");
    assertThat(recorded.count("reads")).isOne();
  }

  /** REC-6, REC-12: with its parameters in its text, from a cursor that fetches by and by, in a transaction, from a pool. */
  @Test
  void eachWayToReadIsBehind() throws SQLException {
    String key = newKey();
    try (LineageScope scope = Antipode.scope(); Connection writing = source.getConnection();
        Connection connection = region().wrap("b1", options()).getConnection();
        Statement statement = connection.createStatement();
        HikariDataSource pool = new HikariDataSource()) {
      Region.update(writing, Region.INSERT, key, "v");
      assertThat(statement.executeQuery("SELECT value FROM posts WHERE key = '" + key + "'").next()).isFalse();
      connection.setAutoCommit(false);
      statement.setFetchSize(1);
      assertThat(statement.executeQuery("SELECT value FROM posts WHERE key = '" + key + "'").next()).isFalse();
      connection.commit();
      pool.setDataSource(region().plain("b1"));
      try (Connection pooled = AntipodePostgres.wrap(pool, options()).getConnection()) {
        assertThat(Reader.value(pooled, key)).isNull();
      }
      assertThat(scope.isClosed()).isFalse();
    }
    recorded.findings(3);
    assertThat(recorded.lines("behind")).hasSize(3);
    assertThat(recorded.lines().toString()).doesNotContain(key);
  }

  /** REC-13. */
  @Test
  void whatIsThereIsNoFinding() throws SQLException {
    String key = newKey();
    try (LineageScope scope = Antipode.scope(); Connection connection = source.getConnection()) {
      Region.update(connection, Region.INSERT, key, "v");
      assertThat(Reader.value(connection, key)).isEqualTo("v");
      assertThat(scope.isClosed()).isFalse();
    }
    recorded.settled();
    assertThat(recorded.count("followed_reads")).isOne();
    assertThat(recorded.lines("behind", "stale")).isEmpty();
  }
}
