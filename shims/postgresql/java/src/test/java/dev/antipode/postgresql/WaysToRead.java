package dev.antipode.postgresql;

import dev.antipode.testing.StoreUnderTest.PastMoment;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyOut;

/** How the conformance kit reads a row by one connection, in ways of which a shim cannot be sure that they read. */
final class WaysToRead {
  private WaysToRead() {}

  private interface Way {
    String read(String key) throws SQLException;
  }

  private static Function<String, Object> way(Way way) {
    return key -> {
      try {
        return way.read(key);
      } catch (SQLException error) {
        throw new IllegalStateException(error.getMessage(), error);
      }
    };
  }

  /** The ways, by their names; there is a function {@code value_of}. */
  static Map<String, Function<String, Object>> of(Connection client) {
    Map<String, Function<String, Object>> ways = new LinkedHashMap<>();
    ways.put("a query", way(key -> Region.shows(client, key)));
    ways.put("a function", way(key -> last(client, "SELECT value_of('" + key + "')")));
    ways.put("several", way(key -> last(client, "SELECT 1; SELECT value FROM posts WHERE key = '" + key + "'")));
    ways.put("COPY", way(key -> copied(client, "COPY (SELECT value FROM posts WHERE key = '" + key + "') TO STDOUT")));
    return ways;
  }

  private static String copied(Connection client, String text) throws SQLException {
    CopyOut rows = client.unwrap(PGConnection.class).getCopyAPI().copyOut(text);
    StringBuilder found = new StringBuilder();
    for (byte[] row = rows.readFromCopy(); row != null; row = rows.readFromCopy()) {
      found.append(new String(row, StandardCharsets.UTF_8).trim());
    }
    return found.toString();
  }

  /** The first value of the last result. */
  private static String last(Connection client, String text) throws SQLException {
    String value = null;
    try (Statement statement = client.createStatement()) {
      for (boolean hasRows = statement.execute(text); hasRows; hasRows = statement.getMoreResults()) {
        try (ResultSet found = statement.getResultSet()) {
          value = found.next() ? found.getString(1) : null;
        }
      }
    }
    return value;
  }

  /** A cursor that shows a row as it is now. */
  static PastMoment cursor(Connection client, String key) {
    try {
      client.setAutoCommit(false);
      last(client, "DECLARE past CURSOR FOR SELECT value FROM posts WHERE key = '" + key + "'");
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
    return new PastMoment() {
      @Override
      public Object fetch() {
        return way(nothing -> last(client, "FETCH past")).apply(key);
      }

      @Override
      public void close() {
        try {
          client.close();
        } catch (SQLException lost) {
          // so it is closed
        }
      }
    };
  }
}
