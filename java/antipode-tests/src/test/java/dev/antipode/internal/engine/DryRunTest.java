package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Ordered;
import dev.antipode.Settings;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.dryrun.Records;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Write;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Dry-run, and the records that it leaves (BAR-48, BAR-49, REC-1 to REC-9). */
@ExtendWith(AntipodeIsolated.class)
class DryRunTest {
  private static final BarrierOptions PATIENT = BarrierOptions.defaults().timeout(Duration.ofSeconds(20));
  private static final Lineage WRITE = Lineage.of(new WriteId("s", "private-key", new Ordered("", 1)));

  @TempDir
  Path folder;

  @BeforeEach
  void records() {
    Antipode.configure(Settings.defaults().mode(Mode.DRY_RUN).records(folder.toString()).region("b"));
  }

  /** The records of a kind, each of the schema's shape. */
  private List<JsonNode> records(String kind) {
    assertThat(Records.flush(20_000)).isTrue();
    List<JsonNode> found = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        for (String line : Files.readAllLines(file)) {
          JsonNode record = new ObjectMapper().readTree(line);
          assertThat(line).doesNotContain("private-key"); // REC-8
          check(record);
          if (record.get("kind").asText().equals(kind)) {
            found.add(record);
          }
        }
      }
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return found;
  }

  private JsonNode record(String kind) {
    EngineTest.until(() -> !records(kind).isEmpty());
    assertThat(records(kind)).hasSize(1);
    return records(kind).get(0);
  }

  /** What schemas/record.schema.json requires of the kinds that are written here. */
  private static void check(JsonNode record) {
    assertThat(record.get("record").asInt()).isEqualTo(1);
    assertThat(record.get("time").asDouble()).isGreaterThan(1.7e9);
    assertThat(record.get("region").asText()).isEqualTo("b");
    assertThat(record.get("process").asText()).matches(".+:\\d+:\\d+");
    assertThat(record.get("site").asText()).matches("^(.+:[1-9][0-9]*|other)$");
    List<String> wanted = switch (record.get("kind").asText()) {
      case "barrier" -> List.of("service", "origin", "reach", "satisfied", "complete", "stores");
      case "vacuous" -> List.of("service", "origin", "lineage_stores", "registered");
      case "published_before_commit" -> List.of("service", "store", "target");
      case "orphan" -> List.of("service", "store");
      default -> throw new AssertionError("no such kind: " + record);
    };
    for (String field : wanted) {
      assertThat(record.has(field)).as("%s in %s", field, record).isTrue();
    }
  }

  @Test
  void itWaitsForNothingAndRecordsHowLongItWouldHaveBeen() {
    MemoryStore store = MemoryStore.named("blog-posts").lag(Duration.ofMillis(600));
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      assertThat(scope).isNotNull();
      writer.set("k", "v");
      BarrierResult result = Antipode.barrier(PATIENT);
      assertThat(reader.get("k")).isNull();
      assertThat(result.dryRun()).isTrue();
      assertThat(result.satisfied()).as("code that asks for it goes on as without a barrier").isTrue();
      assertThat(result.complete()).isFalse();
      assertThat(result.store("blog-posts").verdict()).isEqualTo(Verdict.NOT_YET);
      assertThat(result.toString()).startsWith("dry run, nothing was waited for: blog-posts not yet: ");
    }
    JsonNode record = record("barrier");
    assertThat(record.get("satisfied").asBoolean()).isFalse();
    assertThat(record.get("origin").get("scope").asText()).isEqualTo("root");
    JsonNode seen = record.get("stores").get(0);
    assertThat(seen.get("verdict").asText()).isEqualTo("not_yet");
    assertThat(seen.get("visible_after").asDouble()).isBetween(0.1, 20.0);
    assertThat(StreamSupport.stream(seen.get("servers").spliterator(), false).map(JsonNode::asText))
        .containsExactly("memory://blog-posts/a", "memory://blog-posts/b");
  }

  @Test
  void whatWasThereIsRecordedAsVisibleAndFuturesDoTheSame() {
    FakeShim.store("s", new Fake("s1", FakeShim.always(Visibility.VISIBLE)));
    assertThat(Antipode.barrierAsync(PATIENT.lineage(WRITE)).join().dryRun()).isTrue();
    JsonNode record = record("barrier");
    assertThat(record.get("satisfied").asBoolean()).isTrue();
    assertThat(record.get("complete").asBoolean()).isTrue();
    assertThat(record.get("origin").get("scope").asText()).isEqualTo("task");
  }

  @Test
  void aWriteThatNeverComesIsFollowedToAnEnd() {
    long before = FollowRegistry.followFor(Duration.ofMillis(100).toNanos());
    try {
      FakeShim.store("s", new Fake("s1", FakeShim.always(Visibility.NOT_YET)));
      Antipode.barrier(PATIENT.lineage(WRITE));
      JsonNode seen = record("barrier").get("stores").get(0);
      assertThat(seen.get("visible_after").isNull()).as("given up (REC-5)").isTrue();
    } finally {
      FollowRegistry.followFor(before);
    }
  }

  @Test
  void oneSiteOrOneStoreMayBeInDryRun() {
    Antipode.configure(Settings.defaults().mode(Mode.ENFORCE));
    FakeShim.store("s", new Fake("s1", FakeShim.always(Visibility.NOT_YET)));
    assertThat(Antipode.barrier(PATIENT.lineage(WRITE).dryRun(true)).dryRun()).isTrue();
    assertThatThrownBy(() -> Antipode.barrier(PATIENT.lineage(WRITE).timeout(Duration.ofMillis(50))))
        .isInstanceOf(BarrierTimeoutException.class);
    FakeShim.store("tried", Mode.DRY_RUN, new Fake("t1", FakeShim.always(Visibility.NOT_YET)));
    FakeShim.store("kept", new Fake("k1", FakeShim.always(Visibility.VISIBLE)));
    Lineage both =
        Lineage.of(new WriteId("tried", "k", new Ordered("", 1)), new WriteId("kept", "k", new Ordered("", 1)));
    BarrierResult result = Antipode.barrier(PATIENT.lineage(both));
    assertThat(result.satisfied()).isTrue();
    assertThat(result.complete()).isFalse();
    assertThat(result.store("tried").verdict()).isEqualTo(Verdict.NOT_YET);
  }

  /** CONF-5. */
  @Test
  void codeCannotUndoTheEnvironmentsDryRun() {
    try {
      ProcessSettings.environment(Map.of("ANTIPODE_MODE", "dry-run"));
      Antipode.configure(Settings.defaults().mode(Mode.ENFORCE));
      FakeShim.store("s", new Fake("s1", FakeShim.always(Visibility.NOT_YET)));
      assertThat(Antipode.barrier(PATIENT.lineage(WRITE).dryRun(false)).dryRun()).isTrue();
    } finally {
      ProcessSettings.environment(null);
    }
  }

  @Test
  void dryRunStillRefusesMistakes() {
    assertThatThrownBy(Antipode::barrier).isInstanceOf(ConfigurationException.class);
  }

  /** SCOPE-18, REC-4. */
  @Test
  void findingsAreRecorded() {
    RegionStore store = FakeShim.store("s", new Fake("s1", FakeShim.always(Visibility.VISIBLE)));
    try (LineageScope scope = Antipode.scope()) {
      try (Write write = store.begin(Key.of("private-key"))) {
        Antipode.serialize();
        write.record(new Ordered("", 1));
      }
      assertThat(scope.pending()).isEmpty();
    }
    try (Write write = store.begin(Key.of("private-key"))) { // outside any scope
      write.record(new Ordered("", 2));
    }
    Antipode.barrier(PATIENT.lineage(Lineage.of(WriteId.position("elsewhere", "e", 1))));
    assertThat(record("published_before_commit").get("store").asText()).isEqualTo("s");
    assertThat(record("orphan").get("store").asText()).isEqualTo("s");
    JsonNode vacuous = record("vacuous");
    assertThat(vacuous.get("lineage_stores").get(0).asText()).isEqualTo("elsewhere");
    assertThat(vacuous.get("registered").get(0).asText()).isEqualTo("s");
  }

  /** REC-2. */
  @Test
  void aFolderThatCannotBeWrittenNeverReachesTheApplication() throws IOException {
    Path blocked = Files.createFile(folder.resolve("file"));
    Antipode.configure(Settings.defaults().records(blocked.toString()));
    FakeShim.store("s", new Fake("s1", FakeShim.always(Visibility.VISIBLE)));
    assertThat(Antipode.barrier(PATIENT.lineage(WRITE)).satisfied()).isTrue();
    assertThat(Records.flush(20_000)).isTrue();
    assertThat(Files.size(blocked)).isZero();
  }
}
