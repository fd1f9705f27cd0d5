package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.LineageScope;
import dev.antipode.StoreOptions;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One connection of the driver, used by several threads, or through several wraps of it. */
class SharedConnectionTest extends QuietRegion {
  private static final int ROUNDS = 300;

  private static void commitAgainAndAgain(Connection connection, String way, AtomicBoolean over) throws SQLException {
    while (!over.get()) {
      if (way.equals("commit")) {
        connection.commit();
      } else {
        connection.createStatement().execute("COMMIT");
      }
      connection.createStatement().execute("SELECT 1");
    }
  }

  /** What one thread writes is not settled by a commit of another that was before it. */
  @ParameterizedTest
  @ValueSource(strings = {"commit", "COMMIT"})
  void oneThreadWritesAndAnotherCommits_SCOPE_14(String way) throws Exception {
    ExecutorService other = Executors.newSingleThreadExecutor();
    try (Connection connection = source.getConnection()) {
      connection.setAutoCommit(false);
      for (int round = 0; round < ROUNDS; round++) {
        String key = newKey();
        AtomicBoolean over = new AtomicBoolean();
        Future<?> committing = other.submit(() -> {
          commitAgainAndAgain(connection, way, over);
          return null;
        });
        try (LineageScope scope = Antipode.scope()) {
          Region.update(connection, Region.INSERT, key, "v");
          over.set(true);
          committing.get();
          boolean isThere = shows("a", key) != null;
          assertThat(scope.lineage().isComplete()).as("round %d, %s", round, scope.lineage()).isEqualTo(isThere);
          connection.commit();
          assertPosition(scope.lineage());
        }
      }
    } finally {
      other.shutdownNow();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"rollback", "close", "ROLLBACK"})
  void twoWrapsOfOneConnection_SCOPE_24(String end) throws Exception {
    String key = newKey();
    try (Connection plain = region().plain("a").getConnection(); LineageScope scope = Antipode.scope()) {
      Connection first = AntipodePostgres.wrap(plain, options());
      Connection second = AntipodePostgres.wrap(plain, options());
      first.setAutoCommit(false);
      Region.update(first, Region.INSERT, key, "v");
      second.commit();
      switch (end) {
        case "rollback" -> first.rollback();
        case "close" -> first.close();
        default -> first.createStatement().execute(end);
      }
      assertThat(shows("a", key)).isNotNull();
      assertPosition(scope.lineage());
    }
  }

  /** One server has one name: what a commit by the one wrap means for the other's store nobody could say. */
  @Test
  void twoStoresOnOneConnectionAreRefused_SCOPE_24() throws Exception {
    try (Connection plain = region().plain("a").getConnection()) {
      assertThat(AntipodePostgres.wrap(plain, options())).isNotNull();
      assertRefused(() -> AntipodePostgres.wrap(plain, StoreOptions.named("other-posts")));
      assertThat(AntipodePostgres.wrap(plain, options())).isNotNull();
    }
    try (HikariDataSource pool = new HikariDataSource()) {
      pool.setDataSource(region().plain("a"));
      pool.setMaximumPoolSize(1);
      assertThat(AntipodePostgres.wrap(pool, options())).isNotNull();
      assertRefused(() -> AntipodePostgres.wrap(pool, StoreOptions.named("other-posts")));
    }
  }

  private static void assertRefused(ThrowingCallable wrap) {
    assertThatThrownBy(wrap).isInstanceOfSatisfying(ConfigurationException.class, refused -> {
      assertThat(refused.code()).isEqualTo("AP503");
      assertThat(refused).hasMessageContaining(STORE).hasMessageContaining("other-posts");
    });
  }

  @Test
  void whatIsCommittedPastTheWrapIsOfUnknownOutcome_SCOPE_17() throws Exception {
    try (Connection plain = region().plain("a").getConnection(); LineageScope scope = Antipode.scope()) {
      Connection wrapped = AntipodePostgres.wrap(plain, options());
      wrapped.setAutoCommit(false);
      Region.update(wrapped, Region.INSERT, newKey(), "v");
      plain.commit();
      wrapped.rollback();
      assertThat(scope.pending()).singleElement().satisfies(write -> assertThat(write.isUnknown()).isTrue());
    }
  }
}
