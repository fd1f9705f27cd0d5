package dev.antipode.postgresql;

import dev.antipode.configuration.ProcessSettings;
import dev.antipode.postgresql.Parameters.Setting;
import dev.antipode.postgresql.Session.Refused;
import dev.antipode.shim.Server;
import java.io.IOException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.postgresql.Driver;

/**
 * A read that dry-run follows, as it can be sent once more: to the same server, on a connection of our own that is opened for
 * it and closed behind it, in a transaction that cannot write (REC-14, REC-22, REC-23).
 */
final class ReadAgain implements Callable<Object> {
  /** Of more rows nothing is compared. */
  static final int MOST_ROWS = 10_000;

  private final Target target;
  private final Server server;
  private final Properties given;
  private final String url;
  private final String text;
  private final List<Setting> parameters; // null for a statement that is not prepared
  private String life = ""; // that of the server at the first time; of one thread alone

  private ReadAgain(
      Target target, Server server, Properties given, String url, String text, List<Setting> parameters) {
    this.target = target;
    this.server = server;
    this.given = given;
    this.url = url;
    this.text = text;
    this.parameters = parameters;
  }

  /**
   * How a statement that was just executed is sent again; null where it is not. Never asks a server, and never throws.
   *
   * @param parameters what was set on a prepared statement; null for another one
   */
  static ReadAgain of(
      Flow flow, Target target, Server server, Statement statement, String sent, Parameters parameters) {
    Properties given = flow.binding().session();
    boolean mayBe = given != null
        && ProcessSettings.inForce().repeatReads()
        && sent.length() <= Parameters.MOST_OCTETS
        && flow.session().isAsOpened()
        && Repeatable.is(sent);
    if (!mayBe) {
      return null;
    }
    try {
      List<Setting> copied = parameters == null ? null : parameters.copy();
      if (parameters != null && copied == null || !isPlain(statement)) {
        return null;
      }
      String url = flow.physical().getMetaData().getURL();
      return new ReadAgain(target, server, given, url, sent, copied);
    } catch (SQLException | RuntimeException error) { // it is closed, or a parameter's class is of the application's
      return null;
    }
  }

  /** Whether its rows are those of its text, all of them and as they are. */
  private static boolean isPlain(Statement statement) throws SQLException {
    return !(statement instanceof CallableStatement)
        && statement.getResultSetConcurrency() == ResultSet.CONCUR_READ_ONLY
        && statement.getMaxRows() == 0
        && statement.getMaxFieldSize() == 0;
  }

  /** What the DataSource says of its sessions, and the URL of this one. */
  private Properties session() {
    Properties session = new Properties();
    session.putAll(given);
    Properties words = url == null ? null : Driver.parseURL(url, new Properties());
    if (words != null) {
      session.putAll(Credentials.ofSessions(words));
    }
    return session;
  }

  /**
   * Its rows now, in no order.
   *
   * @throws Exception where they cannot be compared with those of another time
   */
  @Override
  public Object call() throws Exception {
    int millis = (int) Math.max(1, server.askTimeout().toMillis());
    try (Session own = target.openLike(session(), millis)) {
      own.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL statement_timeout = " + millis);
      checkLife(own.row(Questions.LIFE)[0]);
      Object found = rows(own.connection());
      own.execute("ROLLBACK");
      return found;
    }
  }

  /** A name may lead to several servers, and a server may be another one by now. */
  private void checkLife(String now) throws IOException, Refused {
    String looked = server.session() instanceof Look look ? look.life() : "";
    boolean isAnother = !life.isEmpty() && !life.equals(now) || !looked.isEmpty() && !looked.equals(now);
    if (isAnother) {
      throw new IOException(server.address() + " is another server now");
    }
    life = now;
  }

  private Map<List<String>, Integer> rows(Connection connection) throws SQLException {
    if (parameters == null) {
      try (Statement statement = connection.createStatement()) {
        statement.setMaxRows(MOST_ROWS + 1);
        return all(statement.executeQuery(text));
      }
    }
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      statement.setMaxRows(MOST_ROWS + 1);
      Parameters.apply(parameters, statement);
      return all(statement.executeQuery());
    }
  }

  /** How often there is each row. */
  private static Map<List<String>, Integer> all(ResultSet rows) throws SQLException {
    int columns = rows.getMetaData().getColumnCount();
    Map<List<String>, Integer> found = new HashMap<>();
    int count = 0;
    while (rows.next()) {
      if (++count > MOST_ROWS) {
        throw new SQLException("more than " + MOST_ROWS + " rows");
      }
      List<String> row = new ArrayList<>(columns);
      for (int column = 1; column <= columns; column++) {
        row.add(rows.getString(column));
      }
      found.merge(row, 1, Integer::sum);
    }
    return found;
  }
}
