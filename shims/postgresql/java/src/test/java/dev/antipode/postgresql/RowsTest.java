package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Lineage;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.core.BaseConnection;

/** What a result leads back to records as well (SHIM-50). */
class RowsTest extends QuietRegion {
  private static ResultSet rowsOf(String kind, Connection connection, Statement statement) throws SQLException {
    switch (kind) {
      case "metadata":
        return connection.getMetaData().getTables(null, null, "posts", null);
      case "driver":
        return connection.unwrap(BaseConnection.class).execSQLQuery("SELECT 1");
      case "cursor":
        connection.setAutoCommit(false);
        statement.execute("DECLARE c CURSOR FOR SELECT 1");
        ResultSet names = statement.executeQuery("SELECT 'c'::refcursor");
        assertThat(names.next()).isTrue();
        return (ResultSet) names.getObject(1);
      case "parts":
        connection.setAutoCommit(false);
        statement.setFetchSize(1);
        return statement.executeQuery("SELECT generate_series(1, 3)");
      default:
        return statement.executeQuery("SELECT 1");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"query", "parts", "cursor", "driver"})
  void whatAResultsStatementWritesIsRecorded_SHIM_50(String kind) {
    String insert = "INSERT INTO posts (key, value) VALUES ('" + newKey() + "', 'v')";
    Lineage lineage = Region.inScope(source, connection -> {
      try (Statement statement = connection.createStatement(); ResultSet rows = rowsOf(kind, connection, statement)) {
        Statement of = rows.getStatement();
        if (kind.equals("query") || kind.equals("parts")) {
          assertThat(of).isSameAs(statement);
        }
        assertThat(of.executeUpdate(insert)).isEqualTo(1);
      }
      if (!connection.getAutoCommit()) {
        connection.commit();
      }
    });
    assertPosition(lineage);
  }

  @ParameterizedTest
  @ValueSource(strings = {"query", "metadata"})
  void whatTheConnectionOfAResultWritesIsRecorded_SHIM_50(String kind) {
    String insert = "INSERT INTO posts (key, value) VALUES ('" + newKey() + "', 'v')";
    Lineage lineage = Region.inScope(source, connection -> {
      try (Statement statement = connection.createStatement(); ResultSet rows = rowsOf(kind, connection, statement)) {
        assertThat(rows.getStatement().getConnection()).isSameAs(connection);
        try (Statement other = rows.getStatement().getConnection().createStatement()) {
          other.executeUpdate(insert);
        }
      }
    });
    assertPosition(lineage);
  }
}
