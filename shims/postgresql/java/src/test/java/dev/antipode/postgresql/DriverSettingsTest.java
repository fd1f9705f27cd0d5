package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.util.PSQLException;

/** The driver's own settings change how statements travel, and nothing of what is recorded (SHIM-2, SHIM-5, SHIM-6). */
class DriverSettingsTest extends QuietRegion {
  private static DataSource with(String settings) {
    PGSimpleDataSource plain = region().plain("a");
    plain.setUrl(region().jdbc("a") + "?" + settings);
    return AntipodePostgres.wrap(plain, options());
  }

  private static void waits(Lineage lineage, String key) throws SQLException {
    assertPosition(lineage);
    Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(20)));
    assertThat(shows("b1", key)).isNotNull();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "preferQueryMode=simple",
        "preferQueryMode=extendedForPrepared",
        "preferQueryMode=extendedCacheEverything",
        "autosave=always",
        "autosave=conservative",
        "autosave=always&cleanupSavepoints=true",
        "reWriteBatchedInserts=true",
        "prepareThreshold=1",
        "defaultRowFetchSize=2",
        "readOnlyMode=always"
      })
  void everyWayOfSending(String settings) throws SQLException {
    DataSource source = with(settings);
    for (int turn = 0; turn < 2; turn++) {
      String alone = newKey();
      waits(
          Region.inScope(source, connection -> Region.update(connection, Region.INSERT, alone, "v")),
          alone);
    }
    String inTransaction = newKey();
    waits(
        Region.inScope(source, connection -> {
          connection.setAutoCommit(false);
          for (int turn = 0; turn < 6; turn++) { // the driver prepares what it often runs
            Region.update(connection, Region.INSERT, newKey(), "v");
          }
          Region.update(connection, Region.INSERT, inTransaction, "v");
          connection.commit();
          Region.update(connection, Region.INSERT, newKey(), "v");
          connection.rollback();
        }),
        inTransaction);
    assertNothing(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      assertThatThrownBy(() -> Region.update(connection, "INSERT INTO posts (key) VALUES (?)", newKey()))
          .isInstanceOf(PSQLException.class);
      connection.rollback();
    }));
  }

  /** SHIM-5: neither a setting nor a transaction of ours is left on the connection. */
  @ParameterizedTest
  @ValueSource(strings = {"preferQueryMode=simple", "preferQueryMode=extended"})
  void nothingIsLeftOnTheConnection(String settings) throws SQLException {
    try (Connection connection = with(settings).getConnection(); Statement statement = connection.createStatement()) {
      for (boolean autocommit : new boolean[] {true, false}) {
        connection.setAutoCommit(autocommit);
        statement.executeUpdate("INSERT INTO posts VALUES ('" + newKey() + "', 'v')");
        if (!autocommit) {
          connection.commit();
        }
        assertThat(connection.unwrap(org.postgresql.core.BaseConnection.class).getTransactionState())
            .isEqualTo(org.postgresql.core.TransactionState.IDLE);
      }
      connection.setAutoCommit(true);
      try (var rows = statement.executeQuery("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%wal%'")) {
        rows.next();
        assertThat(rows.getInt(1)).isZero();
      }
    }
  }
}
