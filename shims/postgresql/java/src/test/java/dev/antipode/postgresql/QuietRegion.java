package dev.antipode.postgresql;

import dev.antipode.Lineage;
import dev.antipode.StoreOptions;
import dev.antipode.lab.Lab;
import dev.antipode.testing.AntipodeIsolated;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;

/** One PostgreSQL with a standby, for the tests that leave them as they are; it ends with this process. */
@ExtendWith(AntipodeIsolated.class)
abstract class QuietRegion {
  static final String STORE = "blog-posts";

  private static final AtomicInteger NUMBERS = new AtomicInteger();
  private static Region shared;

  DataSource source;

  static synchronized Region region() {
    if (shared == null) {
      shared = new Region(Lab.of(Region.KIND)
          .lag("3ms")
          .set("postgresql.config", "{\"max_prepared_transactions\": \"5\"}"));
      Runtime.getRuntime().addShutdownHook(new Thread(shared::close));
    }
    return shared;
  }

  @BeforeEach
  final void wrapAtThePrimary() {
    source = region().wrap("a", options());
  }

  static StoreOptions options() {
    return StoreOptions.named(STORE).replicas(region().jdbc("b1"));
  }

  static String newKey() {
    return "k" + NUMBERS.incrementAndGet() + "-" + Long.toHexString(System.nanoTime());
  }

  Lineage write(String key) {
    return Region.inScope(source, connection -> Region.update(connection, Region.INSERT, key, "v"));
  }

  static void assertPosition(Lineage lineage) {
    Assertions.assertThat(lineage.ofStore(STORE)).as(lineage.serialize()).hasSize(1);
    Assertions.assertThat(lineage.ofStore(STORE).get(0).isPosition()).isTrue();
    Assertions.assertThat(lineage.isComplete()).isTrue();
  }

  static void assertNothing(Lineage lineage) {
    Assertions.assertThat(lineage.ofStore(STORE)).as(lineage.serialize()).isEmpty();
    Assertions.assertThat(lineage.isComplete()).isTrue();
  }

  static String shows(String server, String key) throws SQLException {
    return region().shows(server, key);
  }
}
