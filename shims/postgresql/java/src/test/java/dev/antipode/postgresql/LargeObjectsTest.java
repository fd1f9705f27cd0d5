package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import java.io.IOException;
import java.io.OutputStream;
import java.sql.Blob;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.junit.jupiter.api.Test;

/** Large objects that a result gives: the driver reads and writes them by itself (SHIM-50). */
class LargeObjectsTest extends QuietRegion {
  /** SHIM-50: a result's large object is written on the driver's own connection. */
  @Test
  void whatAResultsLargeObjectWritesIsRecorded() throws SQLException {
    try (Connection connection = source.getConnection(); Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE IF NOT EXISTS pictures (id int, content oid)");
      statement.execute("INSERT INTO pictures VALUES (1, lo_create(0))");
    }
    for (boolean isStream : new boolean[] {false, true}) {
      Lineage lineage = Region.inScope(source, connection -> {
        connection.setAutoCommit(false);
        LineageScope scope = LineageScope.current();
        try (Statement statement = connection.createStatement();
            ResultSet rows = statement.executeQuery("SELECT content FROM pictures WHERE id = 1")) {
          assertThat(rows.next()).isTrue();
          Blob picture = rows.getBlob(1);
          assertThat(scope.pendingStores()).as("SCOPE-15: it only read").isEmpty();
          if (isStream) {
            try (OutputStream stream = picture.setBinaryStream(1)) {
              stream.write(7);
            } catch (IOException error) {
              throw new IllegalStateException(error);
            }
          } else {
            picture.setBytes(1, new byte[] {7});
          }
          assertThat(scope.pendingStores()).containsExactly(STORE);
        }
        connection.commit();
      });
      assertPosition(lineage);
    }
  }
}
