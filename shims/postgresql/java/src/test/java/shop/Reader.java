package shop;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** An application's own code, outside our packages: where findings say that they happened (REC-11). */
public final class Reader {
  private Reader() {}

  /** Reads without a barrier. */
  public static String value(Connection connection, String key) throws SQLException {
    try (PreparedStatement ask = connection.prepareStatement("SELECT value FROM posts WHERE key = ?")) {
      ask.setString(1, key);
      try (ResultSet rows = ask.executeQuery()) {
        return rows.next() ? rows.getString(1) : null;
      }
    }
  }
}
