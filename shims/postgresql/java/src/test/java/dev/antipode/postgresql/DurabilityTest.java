package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.UnfitStoreException;
import dev.antipode.UnprovenKind;
import dev.antipode.lab.Lab;
import dev.antipode.testing.Isolated;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** Servers that may lose what they acknowledged or replayed (SHIM-45). */
class DurabilityTest extends QuietRegion {
  /** A setting of a server, until it is closed. */
  private record Switched(String server, String setting) implements AutoCloseable {
    Switched {
      change(server, setting, "off");
    }

    private static void change(String server, String setting, String value) {
      try (Connection connection = region().plain(server, "postgres").getConnection();
          Statement statement = connection.createStatement()) {
        statement.execute("ALTER SYSTEM SET " + setting + " = " + value);
        statement.execute("SELECT pg_reload_conf()");
        Region.until(() -> shown(statement, setting).equals(value), setting + " = " + value);
      } catch (SQLException error) {
        throw new IllegalStateException(error);
      }
    }

    private static String shown(Statement statement, String setting) {
      try (ResultSet rows = statement.executeQuery("SHOW " + setting)) {
        rows.next();
        return rows.getString(1);
      } catch (SQLException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void close() {
      change(server, setting, "on");
    }
  }

  private static Lineage written(DataSource source) {
    return Region.inScope(source, connection -> Region.update(connection, Region.INSERT, newKey(), "v"));
  }

  private static void assertUnfit(Region region, String setting) {
    StoreOptions listed = StoreOptions.named("not-durable").replicas(region.jdbc("b1"));
    assertThatThrownBy(() -> region.wrap("a", listed))
        .isInstanceOf(UnfitStoreException.class)
        .hasMessageContaining(setting + " = off")
        .hasMessageContaining("RELAXED_DURABILITY");
    try (Isolated other = new Isolated()) {
      DataSource started = region.wrap("a", listed.onUnfit(StoreOptions.OnUnfit.UNPROVEN));
      assertThat(written(started).incomplete()).containsExactly("not-durable");
      assertThat(other).isNotNull();
    }
    try (Isolated other = new Isolated()) {
      Lineage lineage = written(region.wrap("a", listed.extra(AntipodePostgres.RELAXED_DURABILITY, true)));
      assertThat(lineage.isComplete()).isTrue();
      assertThat(Antipode.barrier(BarrierOptions.defaults().lineage(lineage).timeout(Duration.ofSeconds(30))).complete())
          .isTrue();
      assertThat(other).isNotNull();
    }
  }

  @Test
  void aServerThatMayTearPagesIsUnfit_SHIM_45() {
    try (Switched off = new Switched("a", "full_page_writes")) {
      assertUnfit(region(), off.setting());
    }
  }

  @Test
  void serversWithoutFsyncAreUnfit_SHIM_45() {
    try (Region region = new Region(Lab.of(Region.KIND).lag("1ms").set("postgresql.fsync", "false"))) {
      assertUnfit(region, "fsync");
    }
  }

  /** Also where its setting changes while it is waited for. */
  @Test
  void aStandbyThatMayLoseWhatItHasProvesNothing_SHIM_45() {
    Antipode.configure(Settings.defaults().reconnect(Duration.ofMillis(100)).freePathTtl(Duration.ZERO));
    BarrierOptions options = BarrierOptions.defaults()
        .lineage(write(newKey())).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED).timeout(Duration.ofSeconds(20));
    assertThat(Antipode.barrier(options).complete()).isTrue();
    try (Switched off = new Switched("b1", "full_page_writes")) {
      Region.until(() -> !Antipode.barrier(options).satisfied(), off.setting());
      BarrierResult result = Antipode.barrier(options);
      assertThat(result.store(STORE).kind()).isEqualTo(UnprovenKind.UNFIT);
      assertThat(result.store(STORE).reason()).contains("full_page_writes = off");
    }
    Region.until(() -> Antipode.barrier(options).complete(), "it is durable again");
  }
}
