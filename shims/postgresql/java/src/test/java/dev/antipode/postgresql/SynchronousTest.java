package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.core.BaseConnection;

/** Commits that are done, and whose answers do not come: a synchronous standby is missing. */
class SynchronousTest extends QuietRegion {
  private static void standby(String names) throws SQLException {
    try (Connection connection = region().plain("a", "postgres").getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("ALTER SYSTEM SET synchronous_standby_names = '" + names + "'");
      statement.execute("SELECT pg_reload_conf()");
      Region.until(() -> names.isEmpty() != waits(statement), "commits wait, or do not, as is set");
    }
  }

  /** Return whether a commit waits for a standby now: the server's own processes hear of the setting one after the other. */
  private static boolean waits(Statement statement) {
    try (Connection probe = region().plain("a", "postgres").getConnection()) {
      String asked = "SELECT wait_event FROM pg_stat_activity WHERE pid = " + probe.unwrap(PGConnection.class).getBackendPID();
      Thread committing = new Thread(() -> {
        try (Statement probing = probe.createStatement()) {
          probing.execute("SELECT pg_logical_emit_message(true, 'probe', '')");
        } catch (SQLException error) {
          throw new IllegalStateException(error);
        }
      });
      committing.start();
      boolean isWaiting = false;
      while (committing.isAlive()) {
        if ("SyncRep".equals(word(statement, asked))) {
          isWaiting = true;
          probe.unwrap(PGConnection.class).cancelQuery();
        }
        committing.join(5);
      }
      return isWaiting;
    } catch (SQLException | InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  @AfterEach
  void noneIsMissing() throws SQLException {
    standby("");
  }

  private static String word(Statement statement, String query) {
    try (ResultSet rows = statement.executeQuery(query)) {
      return rows.next() ? rows.getString(1) : null;
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  private interface Act {
    void on(int process) throws SQLException;
  }

  /** Does something when the commit of a connection waits for the standby. */
  private static Thread atCommit(Connection connection, Act act) throws SQLException {
    int process = connection.unwrap(PGConnection.class).getBackendPID();
    String asked = "SELECT wait_event FROM pg_stat_activity WHERE pid = " + process;
    Thread acting = new Thread(() -> {
      try (Connection other = region().plain("a", "postgres").getConnection(); Statement statement = other.createStatement()) {
        Region.until(() -> "SyncRep".equals(word(statement, asked)), "the commit waits");
        act.on(process);
      } catch (SQLException error) {
        throw new IllegalStateException(error);
      }
    });
    acting.start();
    return acting;
  }

  private static void terminate(int process) throws SQLException {
    try (Connection other = region().plain("a", "postgres").getConnection(); Statement statement = other.createStatement()) {
      statement.execute("SELECT pg_terminate_backend(" + process + ")");
    }
  }

  private static void send(Connection connection, String way) throws SQLException {
    switch (way) {
      case "commit" -> connection.commit();
      case "prepared" -> connection.prepareStatement("COMMIT").execute();
      case "driver's own" -> connection.unwrap(BaseConnection.class).execSQLUpdate("COMMIT");
      default -> connection.createStatement().execute(way);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"commit", "COMMIT", "prepared", "driver's own", "COMMIT; SELECT 1", "COMMIT AND CHAIN"})
  void aCommitWhoseAnswerDoesNotComeIsOfUnknownOutcome_SCOPE_17(String way) throws Exception {
    for (String after : new String[] {"close", "rollback"}) {
      String key = newKey();
      try (LineageScope scope = Antipode.scope(); Connection connection = source.getConnection()) {
        connection.setAutoCommit(false);
        Region.update(connection, Region.INSERT, key, "v");
        standby("missing");
        Thread cutting = atCommit(connection, SynchronousTest::terminate);
        assertThatThrownBy(() -> send(connection, way)).isInstanceOf(SQLException.class);
        cutting.join();
        if (after.equals("rollback")) {
          assertThatThrownBy(connection::rollback).isInstanceOf(SQLException.class);
        }
        connection.close();
        assertThat(shows("a", key)).isNotNull();
        assertThat(scope.pending()).as(after).singleElement().satisfies(write -> assertThat(write.isUnknown()).isTrue());
        assertThat(scope.lineage().isComplete()).isFalse();
      }
      standby("");
    }
  }

  /** SHIM-2: what another thread does in the middle of a commit gives no error of ours. */
  @Test
  void aConnectionThatIsClosedInItsCommit_SCOPE_14() throws Exception {
    String key = newKey();
    try (LineageScope scope = Antipode.scope(); Connection connection = source.getConnection()) {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, key, "v");
      standby("missing");
      Thread closing = atCommit(connection, process -> {
        connection.close();
        terminate(process);
      });
      try {
        connection.commit();
      } catch (Exception error) {
        assertThat(error).isInstanceOf(SQLException.class);
      }
      closing.join();
      assertThat(scope.lineage().isComplete()).isFalse();
    }
  }
}
