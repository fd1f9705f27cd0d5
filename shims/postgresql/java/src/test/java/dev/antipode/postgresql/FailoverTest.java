package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.lab.Lab;
import dev.antipode.testing.AntipodeIsolated;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** What positions prove after failovers (EPOCH-6, EPOCH-10, EPOCH-23, EPOCH-28). */
@ExtendWith(AntipodeIsolated.class)
class FailoverTest {
  private static final String STORE = "blog-posts";

  private static Lineage write(DataSource source, String key) {
    return Region.inScope(source, connection -> Region.update(connection, Region.INSERT, key, "v"));
  }

  private static Verdict verdict(Lineage lineage) {
    BarrierResult result = Antipode.barrier(BarrierOptions.defaults()
        .lineage(lineage)
        .timeout(Duration.ofSeconds(15))
        .onTimeout(Policy.PROCEED)
        .onUnproven(Policy.PROCEED));
    return result.store(STORE).verdict();
  }

  private static int epochs(Region region, String where) {
    try (Connection connection = region.plain("b1", "postgres").getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT count(*) FROM antipode.epochs WHERE " + where)) {
      rows.next();
      return rows.getInt(1);
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
  }

  /** What a promotion loses is unproven at once, what it kept stays provable; the connection asks for the new epoch. */
  @Test
  @Timeout(180)
  void whatAPromotionLosesIsUnproven() {
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ZERO));
    try (Region region = new Region(Lab.of(Region.KIND).replicas(2).lag("2ms"))) {
      StoreOptions options = StoreOptions.named(STORE).replicas(region.jdbc("b1"), region.jdbc("b2"));
      DataSource old = region.wrap("a", options);
      Lineage kept = write(old, "kept");
      assertThat(verdict(kept)).isEqualTo(Verdict.VISIBLE);
      List<Lineage> lost = new ArrayList<>();
      region.lab().promoteLosing(Region.KIND, "b1", () -> {
        for (int i = 0; i < 5; i++) {
          lost.add(write(old, "lost" + i));
        }
      });
      DataSource now = region.wrap("b1", options);
      Lineage after = write(now, "after");
      assertThat(verdict(after)).isEqualTo(Verdict.VISIBLE);
      assertThat(verdict(kept)).isEqualTo(Verdict.VISIBLE);
      assertThat(verdict(lost.get(4))).isEqualTo(Verdict.UNPROVEN);
      for (int i = 0; i < 50; i++) { // the new history grows past what was lost
        write(now, "more" + i);
      }
      assertThat(verdict(lost.get(4))).isEqualTo(Verdict.UNPROVEN);
      assertThat(region.shows("b2", "lost4")).isNull();
      // EPOCH-23: where a timeline ended is the server's own knowledge. One row names each, none marks a position.
      assertThat(epochs(region, "true")).isEqualTo(2);
      assertThat(epochs(region, "counter > 0")).isZero();
    }
  }
}
