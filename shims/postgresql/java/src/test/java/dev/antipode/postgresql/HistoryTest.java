package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.BarrierException;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Reading;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.internal.diagnostics.history.Recorder;
import dev.antipode.lab.HistoryCheck;
import dev.antipode.lab.HistoryLines;
import dev.antipode.propagation.Messages;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.core.BaseConnection;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

/** Recorded histories of PostgreSQL: that something was read, and what was written (HIST-36). */
class HistoryTest extends QuietRegion {
  private static final String SELECT = "SELECT value FROM posts WHERE key = 'nobody'";
  private static final int CONSISTENT = 0;
  private static final int UNKNOWN = 2;

  @TempDir
  Path temporary;

  private Path history;

  @BeforeEach
  void record() {
    history = temporary.resolve("history");
    Antipode.configure(settings());
    Recorder.forget();
  }

  private Settings settings() {
    return Antipode.settings().history(history.toString());
  }

  private List<JsonNode> lines(String kind) {
    Recorder.forget();
    return HistoryLines.of(history, kind);
  }

  /** How many there are; of every read nobody knows which writes it shows. */
  private int reads() {
    List<JsonNode> reads = lines("read");
    assertThat(reads).allSatisfy(line -> {
      assertThat(line.get("key").asText()).isEmpty();
      assertThat(line.get("reads_from").asText()).isEqualTo("unattributed");
      assertThat(line.has("value") || line.has("version")).isFalse();
    });
    return reads.size();
  }

  private int verdict() {
    Recorder.forget();
    return HistoryCheck.of(history).exit();
  }

  /** Reads all of it. */
  private static void query(Connection connection, String text) throws SQLException {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
      while (rows.next()) {
        rows.getString(1);
      }
    }
  }

  // What reads

  @Test
  void statementsAndPreparedOnes() {
    Region.inScope(source, connection -> {
      query(connection, SELECT);
      try (Statement statement = connection.createStatement()) {
        assertThat(statement.execute("SELECT * FROM \"posts\" JOIN Posts other ON true, antipode.epochs LIMIT 5")).isTrue();
      }
      Region.shows(connection, "nobody");
      try (PreparedStatement prepared = connection.prepareStatement("TABLE posts")) {
        for (int turn = 0; turn < 2; turn++) {
          assertThat(prepared.execute()).isTrue();
        }
      }
      query(connection, "SELECT 1");
      query(connection, "SHOW server_version");
    });
    assertThat(reads()).isEqualTo(5);
  }

  @Test
  void calls() throws SQLException {
    try (Connection plain = region().plain("a").getConnection(); Statement statement = plain.createStatement()) {
      statement.execute("CREATE OR REPLACE FUNCTION newest() RETURNS text LANGUAGE sql AS 'SELECT max(key) FROM posts'");
    }
    Region.inScope(source, connection -> {
      query(connection, "SELECT newest()");
      try (CallableStatement call = connection.prepareCall("{? = call newest()}")) {
        call.registerOutParameter(1, java.sql.Types.VARCHAR);
        call.execute();
      }
    });
    assertThat(reads()).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 2})
  void transactionsAndCursors(int fetchSize) throws SQLException {
    for (int number = 0; number < 5; number++) {
      write(newKey());
    }
    Recorder.forget();
    Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      try (PreparedStatement all = connection.prepareStatement("SELECT key FROM posts LIMIT 5")) {
        all.setFetchSize(fetchSize);
        try (ResultSet rows = all.executeQuery()) {
          int seen = 0;
          while (rows.next()) {
            seen++;
          }
          assertThat(seen).isEqualTo(5);
        }
      }
      try (Statement statement = connection.createStatement()) {
        statement.execute("DECLARE c CURSOR FOR SELECT key FROM posts");
      }
      query(connection, "FETCH 3 FROM c"); // the query was recorded
      connection.commit();
    });
    assertThat(reads()).isEqualTo(2);
  }

  @Test
  void rowsThatAreReadAgain() throws SQLException {
    String key = newKey();
    write(key);
    Region.inScope(source, connection -> {
      try (Statement statement =
              connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
          ResultSet rows = statement.executeQuery("SELECT key, value FROM posts WHERE key = '" + key + "'")) {
        assertThat(rows.next()).isTrue();
        rows.refreshRow();
        assertThat(rows.getString(2)).isEqualTo("v");
      }
    });
    assertThat(reads()).isEqualTo(2);
  }

  @Test
  void whatGoesPastStatements() throws SQLException {
    long[] number = {0};
    Region.inScope(source, connection -> {
      PGConnection driver = connection.unwrap(PGConnection.class);
      driver.getCopyAPI().copyOut("COPY posts TO STDOUT", new ByteArrayOutputStream());
      connection.unwrap(BaseConnection.class).execSQLQuery("SELECT * FROM posts").close();
      connection.setAutoCommit(false);
      LargeObjectManager objects = driver.getLargeObjectAPI();
      number[0] = objects.createLO(LargeObjectManager.READWRITE);
      try (LargeObject object = objects.open(number[0], LargeObjectManager.READ)) {
        object.read(3);
      }
      connection.rollback();
    });
    assertThat(reads()).isGreaterThan(2); // calls of functions, too
  }

  // What does not

  @Test
  void whatFailsHasReadNothing() throws SQLException {
    Region.inScope(source, connection -> {
      for (boolean autocommit : new boolean[] {true, false}) {
        connection.setAutoCommit(autocommit);
        assertThatThrownBy(() -> query(connection, "SELECT * FROM nowhere")).isInstanceOf(SQLException.class);
        assertThatThrownBy(() -> query(connection, "SELECT * FROM posts WHERE key = ' from secret"))
            .isInstanceOf(SQLException.class);
      }
      connection.rollback();
      assertThatThrownBy(() -> connection.unwrap(PGConnection.class).getCopyAPI()
          .copyOut("COPY nowhere TO STDOUT", new ByteArrayOutputStream())).isInstanceOf(SQLException.class);
    });
    assertThat(reads()).isZero();
  }

  /** BAR-50: a read that gave up waiting has read nothing. */
  @Test
  void whatWaitsInVainHasReadNothing() throws SQLException {
    DataSource standby = region().wrap("b1", options().waitOnRead(true).timeout(Duration.ofSeconds(20)));
    try (LineageScope scope = Antipode.scope(); Connection connection = standby.getConnection()) {
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      connection.setAutoCommit(false);
      query(connection, SELECT);
      scope.transfer(write(newKey()));
      assertThatThrownBy(() -> query(connection, SELECT)).isInstanceOf(BarrierException.class);
      connection.rollback();
    }
    assertThat(reads()).isEqualTo(1);
  }

  @Test
  void batchesReadNothing() {
    Region.inScope(source, connection -> {
      try (PreparedStatement inserting = connection.prepareStatement(Region.INSERT + " RETURNING key")) {
        for (int number = 0; number < 3; number++) {
          inserting.setString(1, newKey());
          inserting.setString(2, "v");
          inserting.addBatch();
        }
        inserting.executeBatch();
      }
      try (Statement statement = connection.createStatement()) {
        statement.addBatch("UPDATE posts SET value = 'w' WHERE key = 'nobody'");
        statement.executeBatch();
        statement.addBatch("SELECT value FROM posts"); // the driver drops its rows, or refuses it
        try {
          statement.executeBatch();
        } catch (BatchUpdateException error) {
          assertThat(error.getMessage()).contains("result");
        }
        assertThat(statement.getResultSet()).isNull();
      }
    });
    assertThat(reads()).isZero();
  }

  @Test
  void outsideOfScopesNothingIsNoted() throws SQLException, IOException {
    try (Connection connection = source.getConnection()) {
      query(connection, SELECT);
      connection.unwrap(PGConnection.class).getCopyAPI().copyOut("COPY posts TO STDOUT", new ByteArrayOutputStream());
    }
    Region.inScope(source, connection -> query(connection, SELECT));
    assertThat(reads()).isEqualTo(1);
  }

  @Test
  void nothingOfAStatementIsInAHistory() {
    String key = newKey();
    Region.inScope(source, connection -> {
      Region.update(connection, "INSERT INTO posts VALUES ('" + key + "', 'from secret')");
      query(connection, "SELECT value FROM posts WHERE key = '" + key + "' OR key = ' from secret '");
      query(connection, "SELECT $$ from secret $$, E'\\' from secret ' FROM posts");
      Region.shows(connection, key);
    });
    Recorder.forget();
    assertThat(HistoryLines.of(history).toString()).doesNotContain("secret", key, "\"key\":\"posts\"");
  }

  // What the verdict is

  /** HIST-31: a store that is only written leaves no gap; one that is read leaves its own. */
  @Test
  void whereNothingIsReadTheHistoryIsWhole() throws SQLException {
    String text;
    try (LineageScope scope = Antipode.scope(); Connection connection = source.getConnection()) {
      Region.update(connection, Region.INSERT, newKey(), "v");
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      text = Messages.outgoing(null);
    }
    try (LineageScope message = Antipode.messageScope(text)) {
      Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(20)));
    }
    assertThat(lines("gap")).isEmpty();
    assertThat(lines("write")).singleElement().satisfies(line -> assertThat(line.get("any_key").asBoolean()).isTrue());
    assertThat(verdict()).isEqualTo(CONSISTENT);
    Region.inScope(source, connection -> query(connection, SELECT));
    assertThat(verdict()).isEqualTo(UNKNOWN);
  }

  /** HIST-26: in the midst of a transaction, whose write is not over. */
  @Test
  void aReadOfATransactionThatWrites() {
    Region.inScope(source, connection -> {
      connection.setAutoCommit(false);
      Region.update(connection, Region.INSERT, newKey(), "v");
      query(connection, SELECT);
      connection.commit();
      query(connection, SELECT);
    });
    assertThat(reads()).isEqualTo(2);
    assertThat(lines("write")).hasSize(1);
    assertThat(verdict()).isEqualTo(UNKNOWN);
  }

  /** HIST-28, HIST-29: a position that no write has is that of the read. */
  @Test
  void aReadSaysWhatItCovers() throws SQLException {
    Antipode.configure(settings().autoMerge(true));
    Lineage merged = Region.inScope(source, connection -> query(connection, SELECT));
    assertThat(lines("read")).singleElement()
        .satisfies(line -> assertThat(line.get("covers").asText()).isEqualTo(merged.serialize()))
        .satisfies(line -> assertThat(line.get("store").asText()).isEqualTo(STORE));
    Antipode.configure(settings().autoMerge(false));
    try (LineageScope scope = Antipode.scope();
        Connection connection = source.getConnection();
        Reading reading = Antipode.reading()) {
      query(connection, SELECT);
      assertThat(scope.isClosed()).isFalse();
      assertThat(lines("read").get(1).get("covers").asText()).isEqualTo(reading.lineage().serialize());
    }
  }

  /** HIST-31: also of a store that is off before anything of it is recorded. */
  @ParameterizedTest
  @EnumSource(Mode.class)
  void modes(Mode mode) {
    Antipode.configure(settings().mode(mode));
    Region.inScope(region().wrap("a", StoreOptions.named("others")), connection -> {
      Region.update(connection, Region.INSERT, newKey(), "v");
      query(connection, SELECT);
    });
    boolean isOff = mode == Mode.OFF;
    assertThat(reads()).isEqualTo(isOff ? 0 : 1);
    assertThat(lines("gap").stream().map(line -> line.get("reason").asText()).toList())
        .isEqualTo(Stream.of(STORE, "others").filter(name -> isOff)
            .map(name -> "reads of " + name + " are not recorded (its mode is off)").toList());
    assertThat(verdict()).isEqualTo(UNKNOWN);
  }
}
