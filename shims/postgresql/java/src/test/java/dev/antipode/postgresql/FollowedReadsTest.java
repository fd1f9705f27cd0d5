package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.testing.Recorded;
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

  private Recorded recorded;

  @BeforeEach
  void dryRun() {
    region().lab().lag(Region.KIND, "b1", Duration.ofSeconds(3));
    recorded = new Recorded(folder);
  }

  @AfterEach
  void linksAreAsBefore() {
    region().lab().lag(Region.KIND, "b1", Duration.ofMillis(3));
  }

  /** REC-6, REC-12, REC-13, REC-22: also where a read would wait, which none does here. */
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
        .contains("\"kind\":\"stale\"", "\"confirmed\":\"repeat\"", "\"store\":\"" + STORE + "\",\"store_kind\":\"postgresql\"")
        .contains("\"site\":\"shop/Reader.java:", "\"wanted\":{\"epoch\":\"", "\"visible_after\":")
        .doesNotContain(key, "null");
    assertThat(recorded.count("reads")).isOne();
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
