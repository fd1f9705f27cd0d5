package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.UnfitStoreException;
import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;
import org.postgresql.jdbc.PgConnection;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;
import org.postgresql.util.PSQLException;

/** What a wrapped DataSource records (SHIM-1, SHIM-2, SHIM-6 to SHIM-8, SHIM-11, SCOPE-14, SCOPE-17, EPOCH-1 to EPOCH-4). */
class RecordingTest extends QuietRegion {
  private void waits(Lineage lineage, String key) throws SQLException {
    assertPosition(lineage);
    Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(20)));
    assertThat(shows("b1", key)).isNotNull();
  }

  @Test
  void aWriteInAutocommitModeIsWaitedFor() throws SQLException {
    String key = newKey();
    waits(write(key), key);
  }

  @Test
  void aTransactionJoinsWhenItsCommitHasReturned() throws SQLException {
    String key = newKey();
    Lineage lineage = Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, key, "v");
      LineageScope scope = LineageScope.current();
      assertThat(scope.held().isComplete()).isTrue();
      assertThat(scope.pendingStores()).containsExactly(STORE);
      assertThat(scope.lineage().isComplete()).isFalse();
      connection.commit();
      assertThat(scope.pendingStores()).isEmpty();
    });
    waits(lineage, key);
  }

  @Test
  void aRollbackAndAReadLeaveNothing() {
    assertNothing(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, newKey(), "v");
      connection.rollback();
      assertThat(Region.shows(connection, "nobody")).isNull();
      connection.commit();
      assertThat(LineageScope.current().pendingStores()).isEmpty();
    }));
  }

  @Test
  void whatOnlyReadByAFunctionIsToldByTheServer() {
    assertNothing(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.executeQuery("SELECT pg_size_pretty(1::bigint)").close();
      }
      assertThat(LineageScope.current().pendingStores()).containsExactly(STORE);
      connection.commit();
    }));
  }

  @Test
  void aClosedConnectionGivesNothingOutAsThePlainOne() throws SQLException {
    Connection plain = region().plain("a").getConnection();
    plain.close();
    assertThatThrownBy(() -> plain.unwrap(PGConnection.class)).isInstanceOf(PSQLException.class);
    Connection connection = source.getConnection();
    assertThat(connection.unwrap(PGConnection.class)).isSameAs(connection);
    connection.close();
    assertThatThrownBy(() -> connection.unwrap(PGConnection.class)).isInstanceOf(PSQLException.class);
  }

  @Test
  void savepointsAreKept() throws SQLException {
    String kept = newKey();
    String dropped = newKey();
    Lineage lineage = Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, kept, "v");
      Savepoint savepoint = connection.setSavepoint();
      Region.update(connection, Region.INSERT, dropped, "v");
      connection.rollback(savepoint);
      connection.commit();
    });
    waits(lineage, kept);
    assertThat(shows("a", dropped)).isNull();
  }

  @Test
  void switchingAutocommitOnCommits() throws SQLException {
    String key = newKey();
    Lineage lineage = Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, key, "v");
      connection.setAutoCommit(true);
      assertThat(connection.getAutoCommit()).isTrue();
    });
    waits(lineage, key);
  }

  @Test
  void transactionsSentAsTextAreSeen() throws SQLException {
    String key = newKey();
    Lineage lineage = Region.inScope(source, connection -> {
      try (Statement statement = connection.createStatement()) {
        statement.execute("BEGIN");
        statement.executeUpdate("INSERT INTO posts VALUES ('" + key + "', 'v')");
        assertThat(LineageScope.current().pendingStores()).containsExactly(STORE);
        statement.execute("COMMIT");
      }
    });
    waits(lineage, key);
    assertNothing(Region.inScope(source, connection -> {
      try (Statement statement = connection.createStatement()) {
        statement.execute("BEGIN");
        statement.executeUpdate("INSERT INTO posts VALUES ('" + newKey() + "', 'v')");
        statement.execute("ROLLBACK");
      }
    }));
    String other = newKey();
    waits(Region.inScope(source, connection -> {
      try (Statement statement = connection.createStatement()) {
        statement.execute("BEGIN; INSERT INTO posts VALUES ('" + other + "', 'v'); COMMIT");
      }
    }), other);
  }

  @Test
  void batchesAreOneWrite() throws SQLException {
    String first = newKey();
    for (boolean autocommit : List.of(true, false)) {
      String prefix = first + autocommit;
      Lineage lineage = Region.inScope(source, connection -> {
        connection.setAutoCommit(autocommit);
        try (PreparedStatement statement = connection.prepareStatement(Region.INSERT)) {
          for (int i = 0; i < 3; i++) {
            statement.setString(1, prefix + i);
            statement.setString(2, "v");
            statement.addBatch();
          }
          assertThat(statement.executeBatch()).containsExactly(1, 1, 1);
        }
        if (!autocommit) {
          connection.commit();
        }
      });
      waits(lineage, prefix + 2);
    }
  }

  @Test
  void returningRowsGeneratedKeysCallsAndRowsChangedInPlaceWrite() throws SQLException {
    String key = newKey();
    waits(Region.inScope(source, connection -> {
      try (PreparedStatement insert = connection.prepareStatement(Region.INSERT + " RETURNING key")) {
        insert.setString(1, key);
        insert.setString(2, "v");
        try (ResultSet rows = insert.executeQuery()) {
          assertThat(rows.next()).isTrue();
          assertThat(rows.getString(1)).isEqualTo(key);
        }
      }
    }), key);
    String generated = newKey();
    waits(Region.inScope(source, connection -> {
      try (PreparedStatement insert = connection.prepareStatement(Region.INSERT, new String[] {"key"})) {
        insert.setString(1, generated);
        insert.setString(2, "v");
        assertThat(insert.executeUpdate()).isEqualTo(1);
        try (ResultSet rows = insert.getGeneratedKeys()) {
          assertThat(rows.next()).isTrue();
          assertThat(rows.getString(1)).isEqualTo(generated);
        }
      }
    }), generated);
    String updated = newKey();
    write(updated);
    assertPosition(Region.inScope(source, connection -> {
      try (Statement statement =
              connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
          ResultSet rows = statement.executeQuery("SELECT key, value FROM posts WHERE key = '" + updated + "'")) {
        assertThat(rows.next()).isTrue();
        rows.updateString("value", "in place");
        rows.updateRow();
      }
    }));
    assertThat(shows("a", updated)).isEqualTo("in place");
    String called = newKey();
    try (Connection connection = region().plain("a").getConnection(); Statement statement = connection.createStatement()) {
      statement.execute("CREATE OR REPLACE PROCEDURE post(key text) LANGUAGE sql AS $$ INSERT INTO posts VALUES ($1, 'v') $$");
    }
    waits(Region.inScope(source, connection -> {
      try (CallableStatement call = connection.prepareCall("CALL post(?)")) {
        call.setString(1, called);
        call.execute();
      }
    }), called);
  }

  @Test
  void copyAndLargeObjectsAreRecorded() throws SQLException {
    String key = newKey();
    waits(Region.inScope(source, connection -> {
      CopyManager copying = connection.unwrap(PGConnection.class).getCopyAPI();
      assertThat(copying.copyIn("COPY posts (key, value) FROM STDIN", new StringReader(key + "\tcopied\n")))
          .isEqualTo(1);
      assertThat(copying.copyOut("COPY posts TO STDOUT", new ByteArrayOutputStream())).isPositive();
    }), key);
    String other = newKey();
    waits(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      new CopyManager(connection.unwrap(BaseConnection.class))
          .copyIn("COPY posts (key, value) FROM STDIN", new StringReader(other + "\tcopied\n"));
      connection.commit();
    }), other);
    assertNothing(Region.inScope(source, connection -> {
      CopyManager copying = connection.unwrap(PGConnection.class).getCopyAPI();
      assertThatThrownBy(() -> copying.copyIn("COPY posts (key, value) FROM STDIN", new StringReader("one column\n")))
          .isInstanceOf(PSQLException.class);
    }));
    assertPosition(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      LargeObjectManager objects = connection.unwrap(PGConnection.class).getLargeObjectAPI();
      long id = objects.createLO(LargeObjectManager.READWRITE);
      try (LargeObject object = objects.open(id, LargeObjectManager.WRITE)) {
        object.write("large".getBytes(java.nio.charset.StandardCharsets.UTF_8));
      }
      connection.commit();
    }));
  }

  @Test
  void cursorsAreReadAsBefore() {
    assertNothing(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.setFetchSize(10);
        int count = 0;
        try (ResultSet rows = statement.executeQuery("SELECT * FROM generate_series(1, 95)")) {
          while (rows.next()) {
            count++;
          }
        }
        assertThat(count).isEqualTo(95);
      }
      connection.commit();
    }));
  }

  @Test
  void errorsAreTheDriversOwn() throws SQLException {
    String key = newKey();
    write(key);
    assertNothing(Region.inScope(source, connection ->
        assertThatThrownBy(() -> Region.update(connection, Region.INSERT, key, "again"))
            .isInstanceOf(PSQLException.class)
            .hasMessageContaining("duplicate key")));
    try (Connection connection = region().plain("a").getConnection(); Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE IF NOT EXISTS late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    }
    assertNothing(Region.inScope(source, connection -> {
      for (int turn = 0; turn < 2; turn++) {
        assertThatThrownBy(() -> Region.update(connection, "INSERT INTO late VALUES (?), (?)", 7, 7))
            .as("it fails when it is committed, behind its own result")
            .isInstanceOf(PSQLException.class)
            .hasMessageContaining("duplicate key");
        assertThat(LineageScope.current().pendingStores()).isEmpty();
      }
      connection.setAutoCommit(false);
      Region.update(connection, "INSERT INTO late VALUES (?), (?)", 7, 7);
      assertThatThrownBy(connection::commit).isInstanceOf(PSQLException.class).hasMessageContaining("duplicate key");
      connection.rollback();
      assertThat(LineageScope.current().pendingStores()).isEmpty();
    }));
  }

  /** SCOPE-17: the connection breaks while a statement that commits by itself is on its way. */
  @Test
  void anOutcomeThatNobodyKnowsStaysPending() {
    Lineage lineage = Region.inScope(source, connection -> {
      int pid = connection.unwrap(PGConnection.class).getBackendPID();
      try (Connection other = region().plain("a").getConnection();
          Connection killer = region().plain("a", "postgres").getConnection()) {
        other.setAutoCommit(false);
        other.createStatement().execute("LOCK TABLE posts IN EXCLUSIVE MODE");
        Thread cut = new Thread(() -> {
          Region.until(() -> isWaiting(killer, pid), "the write waits for the lock");
          try {
            killer.createStatement().execute("SELECT pg_terminate_backend(" + pid + ")");
          } catch (SQLException error) {
            throw new IllegalStateException(error);
          }
        });
        cut.start();
        assertThatThrownBy(() -> Region.update(connection, Region.INSERT, newKey(), "v"))
            .isInstanceOf(SQLException.class);
        cut.join();
        other.rollback();
      }
      assertThat(LineageScope.current().pendingStores()).containsExactly(STORE);
      assertThat(LineageScope.current().lineage().isComplete()).isFalse();
    });
    assertThat(lineage.ofStore(STORE)).isEmpty();
  }

  private static boolean isWaiting(Connection asking, int pid) {
    try (Statement statement = asking.createStatement();
        ResultSet rows = statement.executeQuery(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = " + pid)) {
      return rows.next() && rows.getInt(1) == 1;
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  @Test
  void asynchronousCommitsAreFlushedOrIncomplete() throws SQLException {
    String key = newKey();
    waits(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      connection.createStatement().execute("SET LOCAL synchronous_commit = off");
      Region.update(connection, Region.INSERT, key, "v");
      connection.commit();
    }), key);
    var strict = region().wrap("a", options().extra(AntipodePostgres.ASYNC_COMMITS, "incomplete"));
    Lineage lineage = Region.inScope(strict, connection -> {
      connection.setAutoCommit(false);
      connection.createStatement().execute("SET LOCAL synchronous_commit = off");
      Region.update(connection, Region.INSERT, newKey(), "v");
      connection.commit();
    });
    assertThat(lineage.isComplete() && lineage.ofStore(STORE).isEmpty()).isFalse();
  }

  @Test
  void preparedTransactionsArePendingUntilTheyAreCommitted() throws SQLException {
    String key = newKey();
    waits(Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, key, "v");
      connection.createStatement().execute("PREPARE TRANSACTION '" + key + "'");
      connection.setAutoCommit(true);
      assertThat(LineageScope.current().pendingStores()).containsExactly(STORE);
      connection.createStatement().execute("COMMIT PREPARED '" + key + "'");
    }), key);
  }

  /** SCOPE-17, SCOPE-24: each name has its own writes, and what nobody told of is in doubt. */
  @Test
  void theEndOfAnotherPreparedTransactionSettlesNothing() throws SQLException {
    String mine = newKey();
    String theirs = newKey();
    String unseen = newKey();
    Region.inScope(source, connection -> prepare(connection, theirs));
    Lineage lineage = Region.inScope(source, connection -> {
      prepare(connection, mine);
      connection.createStatement().execute("COMMIT PREPARED '" + theirs + "'");
      assertThat(LineageScope.current().pendingStores()).containsExactly(STORE);
    });
    assertThat(lineage.isComplete()).isFalse();
    Region.inScope(source, connection -> connection.createStatement().execute("COMMIT PREPARED '" + mine + "'"));
    for (boolean isBatch : new boolean[] {false, true}) {
      Lineage doubtful = Region.inScope(source, connection -> {
        String insert = "INSERT INTO posts (key, value) VALUES ('" + unseen + isBatch + "', 'v')";
        String prepares = "PREPARE /* */ TRANSACTION '" + unseen + isBatch + "'";
        try (java.sql.Statement statement = connection.createStatement()) {
          if (isBatch) {
            for (String each : List.of("BEGIN", insert, prepares)) {
              statement.addBatch(each);
            }
            statement.executeBatch();
          } else {
            statement.execute("BEGIN;" + insert + ";" + prepares);
          }
        }
        LineageScope.current();
      });
      assertThat(doubtful.isComplete()).as("a batch: " + isBatch).isFalse();
      Region.inScope(source, connection ->
          connection.createStatement().execute("ROLLBACK PREPARED '" + unseen + isBatch + "'"));
    }
  }

  private static void prepare(Connection connection, String name) throws SQLException {
    connection.setAutoCommit(false);
    Region.update(connection, Region.INSERT, name, "v");
    connection.createStatement().execute("PREPARE TRANSACTION '" + name + "'");
    connection.setAutoCommit(true);
  }

  @Test
  void unwrapLeadsToWhatIsInside() throws SQLException {
    assertThat(source.isWrapperFor(org.postgresql.ds.PGSimpleDataSource.class)).isTrue();
    try (Connection connection = source.getConnection()) {
      assertThat(connection.isWrapperFor(PGConnection.class)).isTrue();
      assertThat(connection.unwrap(PgConnection.class)).isInstanceOf(PgConnection.class);
      assertThat(connection.unwrap(Connection.class)).isSameAs(connection);
      assertThat(connection).isInstanceOf(PGConnection.class);
      assertThat(connection.createStatement().getConnection()).isSameAs(connection);
      assertThat(connection.getMetaData().getConnection()).isSameAs(connection);
      assertThat(connection).isEqualTo(connection).isNotEqualTo(null);
    }
    // Around a wrapped one: the plain one is inside (SHIM-1).
    assertThat(AntipodePostgres.wrap(source, options()).unwrap(org.postgresql.ds.PGSimpleDataSource.class)).isNotNull();
  }

  @Test
  void inModeOffNothingIsRecorded() {
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    assertNothing(write(newKey()));
  }

  @Test
  void aClientDoesByTheModeThatALaterWrapGivesItsStore_SHIM_1() throws Exception {
    region().wrap("a", options().mode(Mode.OFF));
    assertNothing(write(newKey()));
    region().wrap("a", options().mode(Mode.ENFORCE));
    assertPosition(write(newKey()));
  }

  @Test
  void manyThreadsEachInTheirOwnScope() throws Exception {
    List<Thread> threads = new java.util.ArrayList<>();
    List<Throwable> wrong = java.util.Collections.synchronizedList(new java.util.ArrayList<>());
    for (int i = 0; i < 4; i++) {
      Thread thread = new Thread(() -> {
        for (int turn = 0; turn < 5; turn++) {
          String key = newKey();
          waitsQuietly(write(key), key);
        }
      });
      thread.setUncaughtExceptionHandler((where, error) -> wrong.add(error));
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join(60_000);
    }
    assertThat(wrong).isEmpty();
  }

  private void waitsQuietly(Lineage lineage, String key) {
    try {
      waits(lineage, key);
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  /** SHIM-3, EPOCH-7: a pooler in transaction mode is found out when the client is wrapped. */
  @Test
  void aPoolerInTransactionModeIsRefused() {
    int port = region().lab().verb(Region.KIND, "pooler", "a", "transaction").asInt();
    org.postgresql.ds.PGSimpleDataSource pooled = new org.postgresql.ds.PGSimpleDataSource();
    pooled.setUrl("jdbc:postgresql://127.0.0.1:" + port + "/app");
    pooled.setUser("app");
    assertThatThrownBy(() -> AntipodePostgres.wrap(pooled, StoreOptions.named("pooled")))
        .isInstanceOf(UnfitStoreException.class)
        .hasMessageContaining("transaction mode")
        .hasMessageContaining("pool_mode = session");
  }

  /** SHIM-3: a server that does not answer yet is no error. */
  @Test
  void aServerThatDoesNotAnswerIsNoError() {
    org.postgresql.ds.PGSimpleDataSource nobody = new org.postgresql.ds.PGSimpleDataSource();
    nobody.setUrl("jdbc:postgresql://127.0.0.1:1/app");
    assertThat(AntipodePostgres.wrap(nobody, "nobody")).isNotNull();
  }
}
