package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierUnprovenException;
import dev.antipode.Gap;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.Verdict;
import dev.antipode.internal.diagnostics.dryrun.Records;
import dev.antipode.memory.MemoryStore;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Open branches, which Java carries and never passes (BRANCH-8, BRANCH-16 to BRANCH-19). */
@ExtendWith(AntipodeIsolated.class)
class BranchesTest {
  private static final String ID = "0123456789abcdef".repeat(2);
  private static final BarrierOptions GOES_ON =
      BarrierOptions.defaults().onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);

  private MemoryStore posts;

  @BeforeEach
  void store() {
    posts = MemoryStore.named("posts").regions("a");
    posts.client("a");
  }

  private static String open(long lease) {
    return "antipode-branches.orders_2F%s..%d".formatted(ID, lease);
  }

  /** BRANCH-17, BRANCH-18: also where the lineage's writes are all visible, and where stores are named. */
  @Test
  void anOpenBranchIsNamedAndNeverPassed() {
    try (LineageScope scope = Antipode.scope()) {
      posts.client("a").set("k", "v");
      assertThat(Antipode.barrier().complete()).isTrue();
      scope.merge(Lineage.deserialize("1~" + open(System.currentTimeMillis() + 30_000)));
      for (BarrierOptions options : List.of(GOES_ON, GOES_ON.stores("posts"))) {
        BarrierResult result = Antipode.barrier(options);
        assertThat(result.satisfied()).isFalse();
        assertThat(result.vacuous()).isFalse();
        assertThat(result.store("antipode-branches").verdict()).isEqualTo(Verdict.UNPROVEN);
        assertThat(result.store("antipode-branches").reason()).contains("their tasks may have writes to make");
        assertThat(result.store("posts").verdict()).isEqualTo(Verdict.VISIBLE);
      }
      assertThatThrownBy(Antipode::barrier)
          .isInstanceOf(BarrierUnprovenException.class)
          .hasMessageContaining("antipode-branches: open branches");
      assertThat(scope.lineage().serialize()).contains(open(0).replaceAll("0$", "")); // it is carried on
    }
  }

  /** BRANCH-16. */
  @Test
  void oneThatWasOpenLongAgoIsIncomplete() {
    long dayAndMore = System.currentTimeMillis() - 24 * 3_600_000L - 10_000;
    try (LineageScope scope = LineageScopes.of("1~" + open(dayAndMore))) {
      BarrierResult result = Antipode.barrier();
      assertThat(result.satisfied()).isTrue();
      assertThat(result.complete()).isFalse();
      assertThat(result.gaps()).extracting(Gap::reason).containsExactly("branch");
    }
  }

  /** BRANCH-19. */
  @Test
  void aMarkForBranchesCountsInEveryBarrier() {
    try (LineageScope scope = LineageScopes.of("1~_.i.antipode-branches")) {
      assertThat(Antipode.barrier(GOES_ON.stores("posts")).complete()).isFalse();
    }
  }

  /** BRANCH-8: nobody downstream takes itself for the task. */
  @Test
  void theExtensionsOfATasksTextGoNoFurther() {
    String task = "_.task.orders." + ID + ".5";
    try (LineageScope scope = LineageScopes.of("1~" + task + "~_.x")) {
      scope.receive(Lineage.deserialize("1~_.within.orders." + ID + ".5"));
      scope.transfer(Lineage.deserialize("1~" + task));
      assertThat(Antipode.serialize()).isEqualTo("1~_.x");
      assertThat(scope.additions().serialize()).isEqualTo("1");
    }
  }

  /** BRANCH-21: dry-run does not wait, and says what it did not wait for. */
  @Test
  void dryRunRecordsThatOneWasOpen(@TempDir Path folder) throws IOException {
    Antipode.configure(Settings.defaults().mode(Mode.DRY_RUN).records(folder.toString()));
    try (LineageScope scope = LineageScopes.of("1~" + open(System.currentTimeMillis() + 30_000))) {
      assertThat(Antipode.barrier().complete()).isFalse();
    }
    assertThat(Records.flush(20_000)).isTrue();
    List<JsonNode> barriers = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        for (String line : Files.readAllLines(file)) {
          JsonNode record = new ObjectMapper().readTree(line);
          if (record.get("kind").asText().equals("barrier")) {
            barriers.add(record);
          }
        }
      }
    }
    assertThat(barriers).hasSize(1);
    assertThat(barriers.get(0).get("satisfied").asBoolean()).isFalse();
    assertThat(barriers.get(0).get("stores").findValuesAsText("store")).containsExactly("antipode-branches");
  }

  private static final class LineageScopes {
    private static LineageScope of(String text) {
      return LineageScope.open(Lineage.deserialize(text), dev.antipode.ScopeKind.ROOT);
    }
  }
}
