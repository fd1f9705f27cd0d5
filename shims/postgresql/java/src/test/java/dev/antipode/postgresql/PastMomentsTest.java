package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Reading;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyOut;
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
    assertThatThrownBy(fetch).isInstanceOf(BarrierException.class).hasMessageContaining(words);
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
}
