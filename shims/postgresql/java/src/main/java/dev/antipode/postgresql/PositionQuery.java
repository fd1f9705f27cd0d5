package dev.antipode.postgresql;

import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.util.ArrayList;
import java.util.List;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.Field;
import org.postgresql.core.Query;
import org.postgresql.core.QueryExecutor;
import org.postgresql.core.ResultCursor;
import org.postgresql.core.ResultHandlerBase;
import org.postgresql.core.TransactionState;
import org.postgresql.core.Tuple;
import org.postgresql.util.PSQLState;

/**
 * Our own statements on the application's connection: several in one round trip of the extended protocol, unnamed.
 *
 * <p>The driver's statements lose what came before an error; here it is kept, for a commit that is done and a question
 * behind it that fails are no failure of the commit (SHIM-2). It is the one place that uses the driver's inner parts.
 */
final class PositionQuery {
  private static final int FLAGS = QueryExecutor.QUERY_ONESHOT
      | QueryExecutor.QUERY_SUPPRESS_BEGIN
      | QueryExecutor.QUERY_NO_BINARY_TRANSFER
      | QueryExecutor.QUERY_BOTH_ROWS_AND_STATUS;

  private PositionQuery() {}

  /**
   * What the server answered.
   *
   * @param rows of each statement that returned some, in order
   * @param statuses what each statement that was done is called
   * @param error what ended it early, or null
   */
  record Answers(List<List<String[]>> rows, List<String> statuses, SQLException error) {
    /** The rows of the statement of this number, or null where there is no answer to it. */
    List<String[]> rows(int number) {
      return number < rows.size() ? rows.get(number) : null;
    }

    /** The first value of the first row of the last statement, or null. */
    String[] lastRow() {
      List<String[]> last = rows.isEmpty() ? List.of() : rows.get(rows.size() - 1);
      return last.isEmpty() ? null : last.get(0);
    }

    /** The server's words where it refused; empty where it did not. */
    String refusal() {
      return error == null || error.getMessage() == null ? "" : error.getMessage().lines().findFirst().orElse("");
    }

    /** Whether the server stopped for a time limit, or because it was told to. */
    boolean isCancelled() {
      return error != null && PSQLState.QUERY_CANCELED.getState().equals(error.getSQLState());
    }
  }

  /** Asks; a transaction that is not open stays so. Errors of the server are in the answers. */
  static Answers ask(BaseConnection connection, String text) {
    return ask(connection, text, FLAGS);
  }

  /** Asks in a transaction, which the driver begins in the same message where its autocommit is off. */
  static Answers askWithin(BaseConnection connection, String text) {
    return ask(connection, text, FLAGS & ~QueryExecutor.QUERY_SUPPRESS_BEGIN);
  }

  private static Answers ask(BaseConnection connection, String text, int flags) {
    ResultListener heard = new ResultListener();
    SQLException thrown = null;
    try {
      QueryExecutor executor = connection.getQueryExecutor();
      Query query = executor.createSimpleQuery(text);
      try {
        executor.execute(query, null, heard, 0, 0, flags);
      } finally {
        query.close();
      }
    } catch (SQLException error) {
      thrown = error;
    }
    SQLException error = heard.getException() != null ? heard.getException() : thrown;
    return new Answers(heard.rows, heard.statuses, error);
  }

  /** Whether the connection is of no use any more. */
  static boolean isGone(BaseConnection connection, Throwable error) {
    try {
      if (connection.isClosed()) {
        return true;
      }
    } catch (SQLException closed) {
      return true;
    }
    return error instanceof SQLException sql && isLost(sql.getSQLState());
  }

  /** Whether this SQLSTATE says that the connection, or its server, is lost. */
  static boolean isLost(String state) {
    return state != null && (state.startsWith("08") || state.startsWith("57P"));
  }

  static boolean isIdle(BaseConnection connection) {
    return connection.getTransactionState() == TransactionState.IDLE;
  }

  static boolean isOpen(BaseConnection connection) {
    return connection.getTransactionState() == TransactionState.OPEN;
  }

  /** Return whether the statement that is sent next begins a transaction, whatever it is. */
  static boolean opensTransaction(BaseConnection connection) {
    try {
      return isIdle(connection) && !connection.getAutoCommit();
    } catch (SQLException closed) {
      return false; // as the statement will say
    }
  }

  private static final class ResultListener extends ResultHandlerBase {
    private final List<List<String[]>> rows = new ArrayList<>();
    private final List<String> statuses = new ArrayList<>();

    @Override
    public void handleResultRows(Query from, Field[] fields, List<Tuple> tuples, ResultCursor cursor) {
      List<String[]> found = new ArrayList<>(tuples.size());
      for (Tuple tuple : tuples) {
        String[] row = new String[tuple.fieldCount()];
        for (int column = 0; column < row.length; column++) {
          byte[] value = tuple.get(column);
          row[column] = value == null ? null : new String(value, StandardCharsets.UTF_8);
        }
        found.add(row);
      }
      rows.add(found);
    }

    @Override
    public void handleCommandStatus(String status, long updateCount, long insertOid) {
      statuses.add(status);
    }

    @Override
    public void handleWarning(SQLWarning warning) {
      // Nothing of ours is worth one.
    }

    @Override
    public void handleCompletion() {
      // What went wrong is looked at by who asked.
    }
  }
}
