package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import dev.antipode.UnprovenKind;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.time.Duration;
import java.util.Map;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyOut;
import org.postgresql.core.BaseConnection;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

/** Data that are of a moment that is past when they are fetched (SHIM-48). */
class PastMomentsTest extends QuietRegion {
  private static final String ROWS = "SELECT key FROM posts";

  private DataSource standby;

  @BeforeEach
  void wrapTheStandby() {
    standby = region().wrap("b1", options().waitOnRead(true).timeout(Duration.ofSeconds(20)));
    for (int row = 0; row < 4; row++) {
      write(newKey());
    }
  }

  /** What is done in a scope that depends on a write that the standby has by the first read. */
  private interface Work {
    void with(LineageScope scope, Connection connection, Statement statement) throws Exception;
  }

  private void inTransaction(Work work) throws Exception {
    try (LineageScope scope = Antipode.scope(write(newKey()));
        Connection connection = standby.getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      work.with(scope, connection, statement);
      connection.rollback();
    }
  }

  private void dependsOnMore(LineageScope scope) {
    scope.transfer(write(newKey()));
  }

  private static void assertTooOld(ThrowingCallable fetch, String words) {
    assertThatThrownBy(fetch).isInstanceOfSatisfying(BarrierUnprovenException.class, past -> {
      assertThat(past).hasMessageContaining(words);
      assertThat(past.code()).isEqualTo("AP514");
      assertThat(past.result().store(STORE).kind()).isEqualTo(UnprovenKind.OTHER);
    });
  }

  @Test
  void moreRowsOfAResultThatIsFetchedInParts_SHIM_48() throws Exception {
    inTransaction((scope, connection, statement) -> {
      statement.setFetchSize(2);
      ResultSet rows = statement.executeQuery(ROWS);
      for (int row = 0; row < 3; row++) {
        assertThat(rows.next()).isTrue(); // the third is fetched, and nothing is newer
      }
      dependsOnMore(scope);
      assertTooOld(rows::next, "without a fetch size");
      statement.setFetchSize(0);
      ResultSet whole = statement.executeQuery(ROWS);
      dependsOnMore(scope);
      while (whole.next()) {
        assertThat(whole.getString(1)).isNotNull(); // it has come
      }
      statement.setFetchSize(2);
      ResultSet again = statement.executeQuery(ROWS);
      try (Reading seen = Antipode.reading(Lineage.EMPTY)) {
        while (again.next()) {
          assertThat(seen.after()).isPresent();
        }
      }
    });
  }

  @Test
  void cursorsByText_SHIM_48() throws Exception {
    inTransaction((scope, connection, statement) -> {
      statement.execute("DECLARE old CURSOR WITH HOLD FOR " + ROWS);
      statement.execute("FETCH 1 FROM old");
      dependsOnMore(scope);
      assertTooOld(() -> statement.execute("FETCH NEXT FROM \"old\""), "open it anew");
      connection.commit();
      assertTooOld(() -> statement.execute("/* held */ FETCH 1 old;"), "open it anew");
      assertTooOld(() -> statement.execute("SELECT 1; FETCH 1 FROM old"), "open it anew");
      assertTooOld(() -> statement.execute("FETCH 1 FROM declared_elsewhere"), "open it anew");
      statement.execute("CLOSE old");
      statement.execute("DECLARE old CURSOR FOR " + ROWS);
      statement.execute("FETCH 1 FROM old");
      statement.execute("DECLARE other CURSOR FOR " + ROWS + "; FETCH 1 FROM other");
    });
  }

  @Test
  void aSnapshotShowsWhatWasProvedWhenItWasTaken_SHIM_48() throws Exception {
    inTransaction((scope, connection, statement) -> {
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      statement.execute(ROWS);
      statement.execute(ROWS);
      dependsOnMore(scope);
      assertTooOld(() -> statement.execute(ROWS), "snapshot");
      connection.rollback();
      statement.execute(ROWS);
    });
    inTransaction((scope, connection, statement) -> {
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      connection.unwrap(PGConnection.class).setAutosave(org.postgresql.jdbc.AutoSave.ALWAYS);
      assertThatThrownBy(() -> statement.execute("SELECT key, 1 / 0 FROM posts")).isInstanceOf(SQLException.class);
      dependsOnMore(scope); // the snapshot was taken by what has failed
      assertTooOld(() -> statement.execute(ROWS), "snapshot");
    });
  }

  @Test
  void rowsOfACopy_SHIM_48() throws Exception {
    inTransaction((scope, connection, statement) -> {
      CopyOut rows = connection.unwrap(PGConnection.class).getCopyAPI().copyOut("COPY posts TO STDOUT");
      assertThat(rows.readFromCopy()).isNotEmpty();
      dependsOnMore(scope);
      assertTooOld(rows::readFromCopy, "begin another one");
      rows.cancelCopy();
    });
  }

  @Test
  void largeObjects_SHIM_48() throws Exception {
    long[] id = new long[1];
    Lineage made = Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      LargeObjectManager objects = connection.unwrap(PGConnection.class).getLargeObjectAPI();
      id[0] = objects.createLO();
      LargeObject object = objects.open(id[0], LargeObjectManager.WRITE);
      object.write(new byte[] {1, 2, 3, 4});
      object.close();
      connection.commit();
    });
    inTransaction((scope, connection, statement) -> {
      scope.transfer(made);
      LargeObjectManager objects = connection.unwrap(PGConnection.class).getLargeObjectAPI();
      LargeObject object = objects.open(id[0], LargeObjectManager.READ);
      assertThat(object.read(2)).containsExactly(1, 2);
      dependsOnMore(scope);
      assertTooOld(() -> object.read(2), "large object");
    });
  }

  /** What the driver asks by itself. */
  private interface DriversOwn {
    void on(Connection connection) throws SQLException;
  }

  private static final Map<String, DriversOwn> DRIVERS_OWN = Map.of(
      "getTables", connection -> connection.getMetaData().getTables(null, "public", "posts", null).close(),
      "getSchema", connection -> connection.getSchema(),
      "getCatalog", connection -> connection.getCatalog(),
      "setSavepoint", connection -> connection.setSavepoint(),
      "isValid", connection -> connection.isValid(20));

  @ParameterizedTest
  @ValueSource(strings = {"getTables", "getSchema", "getCatalog", "setSavepoint", "isValid"})
  void aSnapshotThatTheDriverTook_SHIM_48(String call) throws Exception {
    inTransaction((scope, connection, statement) -> {
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      DRIVERS_OWN.get(call).on(connection);
      String key = newKey();
      scope.transfer(write(key));
      try (ResultSet rows = statement.executeQuery(ROWS + " WHERE key = '" + key + "'")) {
        assertThat(rows.next()).as("it shows what it waited for").isTrue();
      } catch (BarrierUnprovenException past) {
        assertThat(past).hasMessageContaining("snapshot").hasMessageContaining("AP514");
      }
    });
  }

  @Test
  void aSnapshotThatIsImported_SHIM_48() throws Exception {
    try (Connection other = region().plain("b1").getConnection(); Statement exporting = other.createStatement()) {
      exporting.execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
      ResultSet exported = exporting.executeQuery("SELECT pg_export_snapshot()");
      assertThat(exported.next()).isTrue();
      String imports = "SET TRANSACTION SNAPSHOT '" + exported.getString(1) + "'";
      for (String way : new String[] {"text", "batch", "batch that reads"}) { // which waits, and then imports
        try (LineageScope scope = Antipode.scope(write(newKey()));
            Connection connection = standby.getConnection();
            Statement statement = connection.createStatement()) {
          assertThat(scope.lineage().isEmpty()).isFalse();
          if (way.equals("text")) {
            statement.execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
            statement.execute(imports);
          } else {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            statement.addBatch(imports);
            if (way.equals("batch that reads")) {
              statement.addBatch("DO $$ BEGIN PERFORM key FROM posts; END $$");
            }
            statement.executeBatch();
          }
          assertTooOld(() -> statement.execute(ROWS), "snapshot");
        }
      }
    }
  }

  /** SHIM-2: our questions take no snapshot where the application has still to say which. */
  @Test
  void whatHasToComeBeforeAnyQueryDoes_SHIM_48() throws Exception {
    try (Reading seen = Antipode.reading(write(newKey()));
        Connection connection = standby.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("BEGIN");
      statement.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
      statement.execute(ROWS);
      statement.execute("ROLLBACK");
      connection.setAutoCommit(false);
      statement.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
      statement.execute(ROWS);
      connection.rollback();
      assertThat(seen.lineage().isComplete()).isTrue();
    }
  }

  private void functions() throws Exception {
    write(newKey());
    try (Connection connection = source.getConnection(); Statement statement = connection.createStatement()) {
      statement.execute("CREATE OR REPLACE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS "
          + "$$ DECLARE c refcursor; BEGIN OPEN c FOR SELECT key FROM posts; RETURN c; END $$");
      statement.execute("CREATE OR REPLACE FUNCTION named(name text) RETURNS refcursor LANGUAGE plpgsql AS "
          + "$$ BEGIN RETURN name; END $$");
    }
    region().waitCaughtUp("b1");
  }

  @Test
  void rowsOfACursorThatTheDriverFetches_SHIM_48() throws Exception {
    functions();
    inTransaction((scope, connection, statement) -> {
      ResultSet cursors = statement.executeQuery("SELECT opened()");
      assertThat(cursors.next()).isTrue();
      try (ResultSet rows = (ResultSet) cursors.getObject(1)) {
        assertThat(rows.next()).isTrue();
      }
      ResultSet later = statement.executeQuery("SELECT opened()");
      assertThat(later.next()).isTrue();
      dependsOnMore(scope);
      assertTooOld(() -> later.getObject(1), "call the function again");
      assertShows(connection, "SELECT opened()");
    });
  }

  private static void assertShows(Connection connection, String query) throws SQLException {
    try (Statement statement = connection.createStatement(); ResultSet names = statement.executeQuery(query)) {
      assertThat(names.next()).isTrue();
      try (ResultSet rows = (ResultSet) names.getObject(1)) {
        assertThat(rows.next()).as(query).isTrue();
      }
    }
  }

  /** A name is no more than a text: its cursor is as old as it is, whenever its name is asked for. */
  @ParameterizedTest
  @ValueSource(strings = {"SELECT 'h'::refcursor", "SELECT named('h')", "SELECT name::refcursor FROM pg_cursors WHERE name > ''"})
  void aCursorWhoseNameIsSelectedLater_SHIM_48(String query) throws Exception {
    functions();
    inTransaction((scope, connection, statement) -> {
      statement.execute("DECLARE h CURSOR FOR " + ROWS);
      assertShows(connection, query);
      String unseen = "DO $$ DECLARE c refcursor := 'h'; BEGIN OPEN c FOR " + ROWS + "; END $$";
      for (String opening : new String[] {"DECLARE h CURSOR FOR " + ROWS, unseen}) {
        statement.execute(opening);
        dependsOnMore(scope);
        ResultSet names = statement.executeQuery(query);
        assertThat(names.next()).isTrue();
        assertTooOld(() -> names.getObject(names.getMetaData().getColumnName(1)), "open it anew");
        names.close();
      }
      statement.execute("DECLARE h CURSOR FOR " + ROWS);
      assertShows(connection, query);
    });
  }

  @Test
  void aCursorThatACalledFunctionGives_SHIM_48() throws Exception {
    functions();
    inTransaction((scope, connection, statement) -> {
      assertThat(called(connection, "{? = call opened()}").next()).isTrue();
      statement.execute("DECLARE h CURSOR FOR " + ROWS);
      assertThat(called(connection, "{? = call named('h')}").next()).isTrue();
      statement.execute("DECLARE h CURSOR FOR " + ROWS);
      dependsOnMore(scope);
      assertTooOld(() -> called(connection, "{? = call named('h')}"), "call the function again");
      assertThat(called(connection, "{? = call opened()}").next()).isTrue();
    });
  }

  private static ResultSet called(Connection connection, String call) throws SQLException {
    CallableStatement statement = connection.prepareCall(call);
    statement.registerOutParameter(1, Types.REF_CURSOR);
    statement.execute();
    return (ResultSet) statement.getObject(1);
  }

  @Test
  void rowsThatMayWriteAndTextsOfTheDriversOwnConnection_SHIM_48() throws Exception {
    inTransaction((scope, connection, statement) -> {
      CopyOut rows = connection.unwrap(PGConnection.class).getCopyAPI()
          .copyOut("COPY (SELECT reverse(key) FROM posts) TO STDOUT"); // of which nobody knows that it only reads
      assertThat(rows.readFromCopy()).isNotEmpty();
      dependsOnMore(scope);
      assertTooOld(rows::readFromCopy, "begin another one");
      rows.cancelCopy();
    });
    inTransaction((scope, connection, statement) -> {
      BaseConnection inner = connection.unwrap(BaseConnection.class);
      statement.execute("DECLARE old CURSOR FOR " + ROWS);
      inner.execSQLQuery("FETCH 1 FROM old");
      dependsOnMore(scope);
      assertTooOld(() -> inner.execSQLQuery("FETCH 1 FROM old"), "open it anew");
      inner.setDefaultFetchSize(2);
      ResultSet parts = inner.execSQLQuery(ROWS);
      assertThat(parts.next() && parts.next()).isTrue();
      dependsOnMore(scope);
      assertTooOld(parts::next, "without a fetch size");
    });
  }

  @Test
  void cursorsWhoseNameIsSpelledByNumbers_SHIM_48() throws Exception {
    inTransaction((scope, connection, statement) -> {
      statement.execute("DECLARE U&\"\\0061\" CURSOR FOR " + ROWS);
      dependsOnMore(scope);
      statement.execute("DECLARE U&\"\\0062\" CURSOR FOR " + ROWS);
      assertTooOld(() -> statement.execute("FETCH 1 FROM U&\"\\0061\""), "open it anew");
    });
  }
}
