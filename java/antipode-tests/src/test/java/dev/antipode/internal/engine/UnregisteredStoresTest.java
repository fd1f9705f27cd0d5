package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Delivery;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.RedeliverException;
import dev.antipode.ScopeKind;
import dev.antipode.Settings;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.memory.MemoryStore;
import dev.antipode.testing.AntipodeIsolated;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Stores of a lineage of which this process knows another name, or that it will know. */
@ExtendWith(AntipodeIsolated.class)
class UnregisteredStoresTest {
  private static Lineage position(String store) {
    return Lineage.of(WriteId.position(store, "e", 1));
  }

  /** BAR-6, BAR-7. */
  @Test
  void misspeltNamesAndStoresThatAreToCome() {
    MemoryStore.named("blog-posts").client("a");
    BarrierOptions misspelt = BarrierOptions.defaults().lineage(position("Blog_Posts"));
    for (BarrierOptions each : List.of(misspelt, misspelt.stores("blog-posts"))) {
      assertThatThrownBy(() -> Antipode.barrier(each))
          .isInstanceOf(BarrierUnprovenException.class)
          .hasMessageContaining("\"Blog_Posts\"")
          .hasMessageContaining("\"blog-posts\": the same name");
      BarrierResult result = Antipode.barrier(each.onUnproven(Policy.PROCEED));
      assertThat(result.satisfied() || result.complete()).isFalse();
      assertThat(result.store("Blog_Posts").code()).isEqualTo("AP107");
    }
    assertThat(Antipode.barrier(misspelt.dryRun(true)).store("Blog_Posts").verdict()).isEqualTo(Verdict.UNPROVEN);
    try (LineageScope message = LineageScope.open(position("Blog_Posts"), ScopeKind.MESSAGE, new Delivery(true, ""))) {
      assertThatThrownBy(() -> Antipode.barrier(BarrierOptions.defaults().onUnproven(Policy.REDELIVER)))
          .isInstanceOf(RedeliverException.class);
    }
    Antipode.configure(Settings.defaults().stores("acl"));
    assertThatThrownBy(() -> Antipode.barrier(BarrierOptions.defaults().lineage(position("acl"))))
        .isInstanceOf(BarrierUnprovenException.class)
        .hasMessageContaining("ANTIPODE_STORES");
  }
}
