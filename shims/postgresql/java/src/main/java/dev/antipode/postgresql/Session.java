package dev.antipode.postgresql;

import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.postgresql.core.BaseConnection;

/** Our own connection to one server, used by one thread at a time. Every call ends within the timeout, or throws. */
final class Session implements AutoCloseable {
  /** The server's own answer to a question: an error. */
  static final class RefusedException extends Exception {
    private static final long serialVersionUID = 1;

    RefusedException(SQLException error) {
      super(error.getMessage() == null ? "refused" : error.getMessage().lines().findFirst().orElse("refused"), error);
    }

    RefusedException(String words, Throwable cause) {
      super(words, cause);
    }
  }

  private final Connection connection;
  private final BaseConnection physical;
  private final int timeoutBefore;
  private PreparedStatement prepared;
  private int timeoutMillis;

  /**
   * Takes an open connection over.
   *
   * @throws IOException where it is lost
   */
  Session(Connection connection, int timeoutMillis) throws IOException {
    this.connection = connection;
    try {
      this.physical = connection.unwrap(BaseConnection.class);
      this.timeoutBefore = physical.getNetworkTimeout();
    } catch (SQLException error) {
      throw new IOException(error.getMessage(), error);
    }
    timeout(timeoutMillis);
  }

  /** How long one question may take, in milliseconds. */
  void timeout(int millis) throws IOException {
    if (millis == timeoutMillis) {
      return;
    }
    try {
      physical.setNetworkTimeout(Runnable::run, millis);
      timeoutMillis = millis;
    } catch (SQLException error) {
      throw new IOException(error.getMessage(), error);
    }
  }

  /** Return whether it is a connection of the application's pool. */
  boolean isBorrowed() {
    return connection != physical;
  }

  /** The process id that the server (or a pooler before it) gave for this connection. */
  int backend() {
    return physical.getBackendPID();
  }

  String user() {
    return physical.getQueryExecutor().getUser();
  }

  /** The rows of a query. */
  List<String[]> rows(String text) throws IOException, RefusedException {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
      return all(rows);
    } catch (SQLException error) {
      throw told(error);
    }
  }

  /** The one row of a query. */
  String[] row(String text) throws IOException, RefusedException {
    List<String[]> rows = rows(text);
    if (rows.isEmpty()) {
      throw new RefusedException("no row", null);
    }
    return rows.get(0);
  }

  void execute(String text) throws IOException, RefusedException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(text);
    } catch (SQLException error) {
      throw told(error);
    }
  }

  /** Keeps one statement prepared at the server: it is on our own connection, so nobody else meets it. */
  void prepare(String text) throws IOException, RefusedException {
    try {
      prepared = connection.prepareStatement(text);
    } catch (SQLException error) {
      throw told(error);
    }
  }

  /** The one row of the prepared statement. */
  String[] prepared() throws IOException, RefusedException {
    try (ResultSet rows = prepared.executeQuery()) {
      List<String[]> found = all(rows);
      if (found.isEmpty()) {
        throw new RefusedException("no row", null);
      }
      return found.get(0);
    } catch (SQLException error) {
      throw told(error);
    }
  }

  private static List<String[]> all(ResultSet rows) throws SQLException {
    int columns = rows.getMetaData().getColumnCount();
    List<String[]> found = new ArrayList<>();
    while (rows.next()) {
      String[] row = new String[columns];
      for (int column = 0; column < columns; column++) {
        row[column] = rows.getString(column + 1);
      }
      found.add(row);
    }
    return found;
  }

  private RefusedException told(SQLException error) throws IOException {
    String state = error.getSQLState() == null ? "" : error.getSQLState();
    boolean lost = PositionQuery.isGone(physical, error) || state.startsWith("53") || state.startsWith("58")
        || state.equals("57014");
    if (lost) {
      throw new IOException(error.getMessage(), error);
    }
    return new RefusedException(error);
  }

  /** Ends the connection; never throws. */
  @Override
  public void close() {
    try {
      if (isBorrowed()) {
        physical.setNetworkTimeout(Runnable::run, timeoutBefore); // a borrowed one goes back as it came
      }
      connection.close();
    } catch (SQLException | RuntimeException error) {
      // It is lost already.
    }
  }
}
