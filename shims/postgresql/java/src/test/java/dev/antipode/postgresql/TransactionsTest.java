package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.StoreOptions;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyIn;

/** Transactions of several scopes, and commits within what looks like one transaction. */
class TransactionsTest extends QuietRegion {
  private void waits(Lineage lineage, String key) throws SQLException {
    assertPosition(lineage);
    Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(60)));
    assertThat(shows("b1", key)).isNotNull();
  }

  private static void assertPending(LineageScope scope) {
    assertThat(scope.pendingStores()).containsExactly(STORE);
    assertThat(scope.lineage().isComplete()).isFalse();
  }

  @Test
  void eachScopeOfATransactionHasItsWrite_SCOPE_24() throws SQLException {
    String first = newKey();
    String second = newKey();
    try (Connection connection = source.getConnection(); LineageScope outer = Antipode.scope()) {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, first, "v");
      try (LineageScope inner = Antipode.scope()) {
        Region.update(connection, Region.INSERT, second, "v");
        assertPending(inner);
        connection.commit();
        assertThat(inner.pending()).isEmpty();
        waits(inner.lineage(), second);
      }
      assertThat(outer.pending()).isEmpty();
      waits(outer.lineage(), first);
    }
  }

  @Test
  void whatAHeldCursorWritesItWritesInTheCommit_SCOPE_25() throws SQLException {
    try (Connection connection = source.getConnection()) {
      connection.createStatement().execute("CREATE OR REPLACE FUNCTION kept(text) RETURNS int LANGUAGE sql AS "
          + "$$ INSERT INTO posts VALUES ($1, 'v') RETURNING 1 $$");
      connection.setAutoCommit(false);
      String key = newKey();
      try (LineageScope scope = Antipode.scope()) {
        connection.createStatement().execute("DECLARE c CURSOR WITH HOLD FOR SELECT kept('" + key + "')");
        connection.commit();
        assertThat(scope.lineage().isEmpty()).isFalse();
        waits(scope.lineage(), key);
      }
    }
  }

  @Test
  void aTransactionThatBeganOutsideAnyScopeIsOfThoseThatItMeets_SCOPE_24() throws SQLException {
    List<LineageScope> scopes = new ArrayList<>();
    String key = newKey();
    try (Connection connection = source.getConnection()) {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, newKey(), "v");
      for (int turn = 0; turn < 3; turn++) { // as a consumer of batches: a scope a message
        LineageScope scope = Antipode.scope();
        scopes.add(scope);
        Region.update(connection, Region.INSERT, key + turn, "v");
        assertPending(scope);
      }
      connection.commit();
      for (int turn = 0; turn < 3; turn++) {
        waits(scopes.get(turn).lineage(), key + turn);
      }
      Region.update(connection, Region.INSERT, newKey(), "v");
      connection.rollback();
    } finally {
      for (int turn = scopes.size() - 1; turn >= 0; turn--) {
        scopes.get(turn).close();
      }
    }
    assertThat(scopes).allSatisfy(scope -> assertThat(scope.pending()).isEmpty());
  }

  @Test
  void aRollbackEndsTheWritesOfAllScopes_SCOPE_24() throws SQLException {
    try (Connection connection = source.getConnection();
        LineageScope outer = Antipode.scope()) {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, newKey(), "v");
      try (LineageScope inner = Antipode.scope()) {
        Region.update(connection, Region.INSERT, newKey(), "v");
        connection.rollback();
        assertThat(inner.pending()).isEmpty();
        assertNothing(inner.lineage());
      }
      assertThat(outer.pending()).isEmpty();
      assertNothing(outer.lineage());
    }
  }

  @Test
  void batchesAndCopiesAreOfEachScopeThatAddedToThem_SCOPE_24() throws SQLException {
    String first = newKey();
    String second = newKey();
    try (Connection connection = source.getConnection();
        PreparedStatement insert = connection.prepareStatement(Region.INSERT);
        LineageScope outer = Antipode.scope()) {
      add(insert, first);
      try (LineageScope inner = Antipode.scope()) {
        add(insert, second);
        insert.executeBatch();
        waits(inner.lineage(), second);
      }
      waits(outer.lineage(), first);
    }
    String third = newKey();
    String fourth = newKey();
    try (Connection connection = source.getConnection(); LineageScope outer = Antipode.scope()) {
      CopyIn copy = connection.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY posts (key, value) FROM STDIN");
      copy(copy, third);
      try (LineageScope inner = Antipode.scope()) {
        copy(copy, fourth);
        assertPending(inner);
        copy.endCopy();
        waits(inner.lineage(), fourth);
      }
      waits(outer.lineage(), third);
    }
  }

  private static void add(PreparedStatement insert, String key) throws SQLException {
    insert.setString(1, key);
    insert.setString(2, "v");
    insert.addBatch();
  }

  private static void copy(CopyIn copy, String key) throws SQLException {
    byte[] line = (key + "\tcopied\n").getBytes(StandardCharsets.UTF_8);
    copy.writeToCopy(line, 0, line.length);
  }

  @ParameterizedTest
  @ValueSource(strings = {"COMMIT AND CHAIN", "COMMIT; BEGIN", "COMMIT AND /* no */ CHAIN"})
  void whatWasCommittedWithinIsNotThrownAway_SCOPE_25(String text) throws SQLException {
    for (String end : List.of("rollback", "ROLLBACK", "close")) {
      String key = newKey();
      try (LineageScope scope = Antipode.scope(); Connection connection = source.getConnection()) {
        connection.setAutoCommit(false);
        Region.update(connection, Region.INSERT, key, "v");
        try (Statement statement = connection.createStatement()) {
          statement.execute(text);
          assertPending(scope);
          switch (end) {
            case "rollback" -> connection.rollback();
            case "close" -> connection.close();
            default -> statement.execute(end);
          }
        }
        assertThat(scope.pending()).as(end).isEmpty();
        waits(scope.lineage(), key);
      }
    }
  }

  @Test
  void aLostConnectionLeavesWhatWasCommittedWithinUnknown_SCOPE_25() throws SQLException {
    try (LineageScope scope = Antipode.scope(); Connection connection = source.getConnection()) {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, newKey(), "v");
      int server;
      try (Statement statement = connection.createStatement()) {
        statement.execute("COMMIT AND CHAIN");
        server = connection.unwrap(PGConnection.class).getBackendPID();
      }
      try (Connection other = region().plain("a", "postgres").getConnection(); Statement kill = other.createStatement()) {
        kill.execute("SELECT pg_terminate_backend(" + server + ")");
      }
      Region.until(() -> !isAlive(connection), "the connection ends");
      connection.close();
      assertThat(scope.pending()).singleElement().satisfies(write -> assertThat(write.isUnknown()).isTrue());
    }
  }

  private static boolean isAlive(Connection connection) {
    try (Statement statement = connection.createStatement()) {
      return statement.execute("SELECT 1");
    } catch (SQLException gone) {
      return false;
    }
  }

  /** Nothing of them shows in the text. */
  @ParameterizedTest
  @ValueSource(strings = {
      "SELECT * FROM own_view", "SELECT 1 ==> 2", "SELECT replace(1, 'x')", "SELECT * FROM U&\"own\\005fview\"",
      "COPY (SELECT * FROM own_view) TO STDOUT"})
  void whatTheDatabaseMakesOfATextIsRecorded_SHIM_43(String text) throws SQLException {
    try (Connection other = region().plain("a", "postgres").getConnection(); Statement statement = other.createStatement()) {
      statement.execute("CREATE TABLE IF NOT EXISTS own_log (at text)");
      statement.execute("GRANT ALL ON own_log TO PUBLIC");
      statement.execute("CREATE OR REPLACE FUNCTION own_write(a int, b int) RETURNS int LANGUAGE sql VOLATILE AS"
          + " $$ INSERT INTO own_log VALUES ('x') RETURNING 1 $$");
      statement.execute("CREATE OR REPLACE FUNCTION replace(a int, b text) RETURNS int LANGUAGE sql VOLATILE AS"
          + " $$ INSERT INTO own_log VALUES ('x') RETURNING 1 $$");
      statement.execute("CREATE OR REPLACE VIEW own_view AS SELECT own_write(1, 2)");
      statement.execute("GRANT SELECT ON own_view TO PUBLIC");
      statement.execute("DROP OPERATOR IF EXISTS ==> (int, int)");
      statement.execute("CREATE OPERATOR ==> (LEFTARG = int, RIGHTARG = int, FUNCTION = own_write)");
    }
    DataSource fresh = region().wrap("a", StoreOptions.named("own-" + newKey()));
    Lineage lineage = Region.inScope(fresh, connection -> {
      if (text.startsWith("COPY")) {
        connection.unwrap(PGConnection.class).getCopyAPI().copyOut(text, new StringWriter());
      } else {
        try (Statement statement = connection.createStatement()) {
          statement.executeQuery(text).close();
        }
      }
    });
    assertThat(lineage.ids()).as(text).hasSize(1);
  }

  @Test
  void whatIsMadeBetweenTwoWrapsCountsForTheSecond_SHIM_43() throws SQLException {
    String store = "own-" + newKey();
    String view = "made_" + newKey().replace('-', '_');
    region().wrap("a", StoreOptions.named(store)).getConnection().close();
    try (Connection other = region().plain("a", "postgres").getConnection(); Statement statement = other.createStatement()) {
      statement.execute("CREATE SEQUENCE " + view + "_s");
      statement.execute("CREATE VIEW " + view + " AS SELECT setval('" + view + "_s', 7)");
      statement.execute("GRANT ALL ON " + view + ", " + view + "_s TO PUBLIC");
    }
    Region.until(() -> {
      DataSource second = region().wrap("a", StoreOptions.named(store));
      Lineage lineage = Region.inScope(second, connection -> {
        try (Statement statement = connection.createStatement()) {
          statement.executeQuery("SELECT * FROM " + view).close();
        }
      });
      return lineage.ids().size() == 1;
    }, "the second wrap knows of the view");
  }

  /** Who ends it then nobody here sees: its name is none that is told apart, or its connection is gone. */
  @ParameterizedTest
  @ValueSource(strings = {"E'%s'", "'%s'"})
  void aPreparedTransactionThatNobodyHereEndsIsInDoubt_SCOPE_17(String literal) throws SQLException {
    String name = literal.formatted(newKey());
    try (LineageScope scope = Antipode.scope()) {
      try (Connection connection = source.getConnection()) {
        connection.setAutoCommit(false);
        Region.update(connection, Region.INSERT, newKey(), "v");
        connection.createStatement().execute("PREPARE TRANSACTION " + name);
        assertThat(scope.pending()).singleElement()
            .satisfies(write -> assertThat(write.isUnknown()).isEqualTo(literal.startsWith("E")));
      }
      assertThat(scope.pending()).singleElement().satisfies(write -> assertThat(write.isUnknown()).isTrue());
    } finally {
      try (Connection plain = region().plain("a").getConnection(); Statement statement = plain.createStatement()) {
        statement.execute("ROLLBACK PREPARED " + name);
      }
    }
  }

  /** The scope that wrote has ended by then. */
  @ParameterizedTest
  @ValueSource(strings = {"commit", "COMMIT", "setAutoCommit", "COMMIT PREPARED '%s'", "batch", "endCopy"})
  void whoCommitsWhatOthersWroteDependsOnIt_SCOPE_24(String way) throws SQLException {
    String key = newKey();
    try (Connection connection = source.getConnection(); Statement statement = connection.createStatement()) {
      connection.setAutoCommit(way.equals("endCopy"));
      CopyIn copy = null;
      try (LineageScope writing = Antipode.scope()) {
        if (way.equals("endCopy")) {
          copy = connection.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY posts (key, value) FROM STDIN");
          copy(copy, key);
        } else {
          Region.update(connection, Region.INSERT, key, "v");
        }
        if (way.contains("PREPARED")) {
          statement.execute("PREPARE TRANSACTION '" + key + "'");
        }
        assertPending(writing);
      }
      try (LineageScope committing = Antipode.scope()) {
        assertNothing(committing.lineage());
        switch (way) {
          case "commit" -> connection.commit();
          case "setAutoCommit" -> connection.setAutoCommit(true);
          case "endCopy" -> copy.endCopy();
          case "batch" -> {
            statement.addBatch("COMMIT");
            statement.executeBatch();
          }
          default -> {
            connection.setAutoCommit(!way.equals("COMMIT"));
            statement.execute(way.formatted(key));
          }
        }
        assertThat(committing.pending()).isEmpty();
        waits(committing.lineage(), key);
      }
    }
  }

  @Test
  void whoRollsBackOrCommitsWhatOnlyReadDependsOnNothing_SCOPE_15() throws SQLException {
    try (Connection connection = source.getConnection(); Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      for (boolean wrote : new boolean[] {true, false}) {
        try (LineageScope working = Antipode.scope()) {
          if (wrote) {
            Region.update(connection, Region.INSERT, newKey(), "v");
          } else {
            statement.executeQuery("SELECT coalesce(current_setting('no.such', true), 'none')");
          }
        }
        try (LineageScope ending = Antipode.scope()) {
          if (wrote) {
            connection.rollback();
          } else {
            connection.commit();
          }
          assertThat(ending.pending()).isEmpty();
          assertNothing(ending.lineage());
        }
      }
    }
  }

  @Test
  void whoCommitsOnAConnectionThatIsLostIsInDoubt_SCOPE_24() throws SQLException {
    try (Connection connection = source.getConnection()) {
      connection.setAutoCommit(false);
      try (LineageScope writing = Antipode.scope()) {
        Region.update(connection, Region.INSERT, newKey(), "v");
      }
      int server = connection.unwrap(PGConnection.class).getBackendPID();
      try (Connection other = region().plain("a", "postgres").getConnection(); Statement kill = other.createStatement()) {
        kill.execute("SELECT pg_terminate_backend(" + server + ")");
      }
      try (LineageScope committing = Antipode.scope()) {
        assertThatThrownBy(connection::commit).isInstanceOf(SQLException.class);
        assertThat(committing.pending()).singleElement().satisfies(write -> assertThat(write.isUnknown()).isTrue());
      }
    }
  }
}
