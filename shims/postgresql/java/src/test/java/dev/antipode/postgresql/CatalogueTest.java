package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.WriteId;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.postgresql.PGResultSetMetaData;

/** What the driver reads in the catalogue by itself waits as other reads do, and is covered (SHIM-44, SHIM-13). */
class CatalogueTest extends QuietRegion {
  /** What asks whether there is a table. */
  private interface Way {
    boolean finds(Connection connection, String table) throws SQLException;
  }

  @AfterEach
  void theLinkIsAsBefore() {
    region().lab().lag(Region.KIND, "b1", Duration.ofMillis(3));
  }

  private static boolean isSome(ResultSet rows) throws SQLException {
    try (rows) {
      return rows.next();
    }
  }

  private static boolean isThere(Connection connection, String text, boolean asksParameters) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      return asksParameters ? statement.getParameterMetaData() != null : statement.getMetaData() != null;
    } catch (SQLException missing) {
      assertThat(missing.getSQLState()).isEqualTo("42P01");
      return false;
    }
  }

  private static Map<String, Way> ways() {
    Map<String, Way> ways = new LinkedHashMap<>();
    ways.put("tables", (at, table) -> isSome(at.getMetaData().getTables(null, null, table, null)));
    ways.put("columns", (at, table) -> isSome(at.getMetaData().getColumns(null, null, table, null)));
    ways.put("keys", (at, table) -> isSome(at.getMetaData().getPrimaryKeys(null, null, table)));
    ways.put("columns of a statement", (at, table) -> isThere(at, "SELECT * FROM " + table, false));
    ways.put("parameters", (at, table) -> isThere(at, "SELECT * FROM " + table + " WHERE key = ?", true));
    return ways;
  }

  @Test
  void whatTellsOfTheCatalogueWaits_SHIM_44() throws SQLException {
    DataSource standby = region().wrap("b1", options().waitOnRead(true).timeout(Duration.ofSeconds(20)));
    region().lab().lag(Region.KIND, "b1", Duration.ofMillis(200));
    int number = 0;
    for (boolean autocommit : new boolean[] {true, false}) {
      for (Map.Entry<String, Way> way : ways().entrySet()) {
        String table = "described_" + ++number + "_" + Long.toHexString(System.nanoTime());
        try (LineageScope scope = Antipode.scope(); Connection at = standby.getConnection()) {
          at.setAutoCommit(autocommit);
          try (Connection writer = source.getConnection(); Statement statement = writer.createStatement()) {
            statement.execute("CREATE TABLE " + table + " (key text PRIMARY KEY)");
          }
          assertThat(way.getValue().finds(at, table)).as(way.getKey()).isTrue();
          assertThat(scope.isClosed()).isFalse();
        }
      }
    }
  }

  private static Object[] nothing(Method method) {
    return Arrays.stream(method.getParameterTypes())
        .map(type -> type == int.class ? (Object) 0 : type == boolean.class ? (Object) false : null)
        .toArray();
  }

  /** Each of them, by name. */
  @Test
  void eachResultOfTheCatalogueWaits_SHIM_44() throws Exception {
    DataSource waiting = region().wrap("a", options().timeout(Duration.ofMillis(50)));
    Ordered now = (Ordered) write(newKey()).ids().get(0).version();
    Lineage ahead = Lineage.of(WriteId.position(STORE, now.epoch(), now.counter() + (1L << 30)));
    List<Method> all =
        Arrays.stream(DatabaseMetaData.class.getMethods()).filter(each -> each.getReturnType() == ResultSet.class).toList();
    assertThat(all).hasSizeGreaterThan(20);
    try (Connection connection = waiting.getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT key FROM posts")) {
      ResultSetMetaData columns = rows.getMetaData();
      PGResultSetMetaData own = columns.unwrap(PGResultSetMetaData.class);
      try (Reading seen = Antipode.reading(ahead)) {
        for (Method each : all) {
          assertThatThrownBy(() -> each.invoke(connection.getMetaData(), nothing(each))).as(each.getName())
              .isInstanceOf(InvocationTargetException.class).hasCauseInstanceOf(BarrierTimeoutException.class);
        }
        assertThatThrownBy(() -> columns.isNullable(1)).isInstanceOf(BarrierTimeoutException.class);
        assertThatThrownBy(() -> columns.getColumnTypeName(1)).isInstanceOf(BarrierTimeoutException.class);
        assertThatThrownBy(() -> own.getBaseTableName(1)).isInstanceOf(BarrierTimeoutException.class);
        assertThat(columns.getColumnLabel(1)).isEqualTo("key");
        assertThat(connection.getMetaData().getConnection()).isSameAs(connection);
        assertThat(seen.after()).contains(ahead);
      }
      assertThat(own.getBaseTableName(1)).isEqualTo("posts");
      assertThat(columns.getColumnTypeName(1)).isEqualTo("text");
      assertThat(columns.isNullable(1)).isEqualTo(ResultSetMetaData.columnNoNulls);
    }
  }

  @Test
  void whatTellsOfTheCatalogueIsCovered_SHIM_13() throws SQLException {
    Lineage written = write(newKey());
    for (Map.Entry<String, Way> way : ways().entrySet()) {
      try (Connection connection = source.getConnection(); Reading seen = Antipode.reading()) {
        assertThat(way.getValue().finds(connection, "posts")).as(way.getKey()).isTrue();
        assertThat(written.isCoveredBy(seen.lineage())).as(way.getKey()).isTrue();
      }
    }
  }
}
