package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.antipode.Antipode;
import dev.antipode.AntipodeException;
import dev.antipode.BarrierException;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Delivery;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.OnReplicaOut;
import dev.antipode.Policy;
import dev.antipode.ScopeKind;
import dev.antipode.Settings;
import dev.antipode.UnprovenKind;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.dryrun.Lines;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.EpochJudge;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.WaitOnRead;
import dev.antipode.shim.Write;
import dev.antipode.testing.Isolated;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * The vectors {@code barrier-result}, {@code barrier-policy}, {@code epoch-judge} and {@code configuration-stores} (among them
 * BAR-56, BAR-58, BAR-59).
 */
class BarrierVectorsTest {
  private static final Map<String, Visibility> ANSWERS = Map.of(
      "visible", Visibility.VISIBLE,
      "not_yet", Visibility.NOT_YET,
      "unproven", Visibility.unproven("the test says so"));

  @TempDir
  static Path folder;

  static Stream<DynamicTest> each(String kind, Consumer<JsonNode> run) throws IOException {
    Path file = Path.of(System.getProperty("antipode.spec"), "vectors", kind + ".json");
    JsonNode vectors = new ObjectMapper().readTree(file.toFile());
    assertThat(vectors.get("kind").asText()).isEqualTo(kind);
    List<JsonNode> cases = stream(vectors.get("cases")).toList();
    assertThat(cases).isNotEmpty();
    return cases.stream().map(each -> DynamicTest.dynamicTest(each.get("id").asText(), () -> {
      try (Isolated isolated = new Isolated()) {
        assertThat(isolated).isNotNull();
        run.accept(each);
      }
    }));
  }

  private static Stream<JsonNode> stream(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false);
  }

  private static Fake server(String name, String word) {
    if (word.startsWith("unproven-")) {
      UnprovenKind kind = UnprovenKind.valueOf(word.substring("unproven-".length()).toUpperCase());
      return new Fake(name, FakeShim.always(Visibility.unproven("the test says so", kind)));
    }
    return new Fake(name, word.equals("down") ? FakeShim.DOWN : FakeShim.always(ANSWERS.get(word)));
  }

  /** Writes of the current scope that are in flight, or of unknown outcome. */
  private static void begin(JsonNode pending) {
    pending.properties().forEach(each -> {
      Write write = Registry.current().need(each.getKey()).begin();
      if (each.getValue().asText().equals("unknown")) {
        write.outcomeUnknown();
      }
    });
  }

  @TestFactory
  Stream<DynamicTest> barrierResult() throws IOException {
    return each("barrier-result", BarrierVectorsTest::judged);
  }

  private record Registered(boolean hasDown, boolean waits) {}

  private static Registered register(JsonNode vector) {
    Antipode.configure(Settings.defaults()
        .stores(stream(vector.get("expected")).map(JsonNode::asText).toList())
        .maxWaiters(vector.path("max_waiters").asInt(Settings.defaults().maxWaiters()))
        .onReplicaOut(OnReplicaOut.valueOf(vector.get("on_replica_out").asText().toUpperCase()))
        .replicaOutAfter(Duration.ofMillis(50)));
    List<String> off = vector.has("off") ? stream(vector.get("off")).map(JsonNode::asText).toList() : List.of();
    boolean[] hasDown = {false};
    boolean[] waits = {false};
    vector.get("registered").properties().forEach(store -> {
      List<Fake> servers = new ArrayList<>();
      for (JsonNode word : store.getValue()) {
        hasDown[0] |= word.asText().equals("down");
        waits[0] |= word.asText().equals("not_yet");
        servers.add(server(store.getKey() + servers.size(), word.asText()));
      }
      Mode mode = off.contains(store.getKey()) ? Mode.OFF : Mode.ENFORCE;
      FakeShim.store(store.getKey(), mode, servers.toArray(Fake[]::new));
    });
    return new Registered(hasDown[0], waits[0]);
  }

  private static void judged(JsonNode vector) {
    Registered servers = register(vector);
    boolean looks = vector.get("look").asBoolean();
    Duration patience = Duration.ofMillis(servers.waits() ? 500 : 10_000); // what is answered at once ends it at once
    BarrierOptions options = BarrierOptions.defaults()
        .lineage(Lineage.deserialize(vector.get("lineage").asText()))
        .timeout(looks ? Duration.ZERO : patience)
        .onTimeout(Policy.PROCEED)
        .onUnproven(Policy.PROCEED);
    if (!vector.get("ask").isNull()) {
      options = options.stores(stream(vector.get("ask")).map(JsonNode::asText).toList());
    }
    BarrierOptions asked = options;
    if (vector.has("error")) {
      Throwable error = catchThrowable(() -> Antipode.barrier(asked));
      assertThat(error).isInstanceOf(AntipodeException.class);
      assertThat(pythonName(error)).isEqualTo(vector.get("error").asText());
      return;
    }
    if (servers.hasDown() && looks) {
      Antipode.barrier(asked.timeout(patience));
    }
    BarrierResult result;
    if (vector.has("pending")) {
      try (LineageScope scope = LineageScope.open(asked.lineage(), ScopeKind.REQUEST)) {
        assertThat(scope.lineage()).isEqualTo(asked.lineage());
        begin(vector.get("pending"));
        result = Antipode.barrier(asked.lineage(null));
        List<String> doubted = new ArrayList<>();
        vector.get("pending").fieldNames().forEachRemaining(doubted::add);
        doubted.removeIf(store -> asked.stores() != null && !asked.stores().contains(store));
        assertThat(result.gaps()).extracting("store").containsAll(doubted);
      }
    } else {
      result = Antipode.barrier(asked);
    }
    Map<String, String> kinds = new HashMap<>();
    result.stores().values().stream().filter(store -> store.verdict() != Verdict.UNPROVEN)
        .forEach(store -> assertThat(store.kind()).isNull());
    result.stores().forEach((name, store) -> kinds.put(name, store.kind() == null ? null : store.kind().word()));
    kinds.values().removeIf(Objects::isNull);
    Map<String, String> wantedKinds = new HashMap<>();
    vector.path("kinds").properties().forEach(each -> wantedKinds.put(each.getKey(), each.getValue().asText()));
    assertThat(kinds).isEqualTo(wantedKinds); // BAR-59
    vector.path("codes").properties()
        .forEach(each -> assertThat(result.store(each.getKey()).code()).isEqualTo(each.getValue().asText())); // OBS-15
    Map<String, String> verdicts = new HashMap<>();
    result.stores().forEach((name, store) -> verdicts.put(name, store.verdict().word()));
    Map<String, String> wanted = new HashMap<>();
    vector.get("verdicts").properties().forEach(each -> wanted.put(each.getKey(), each.getValue().asText()));
    assertThat(verdicts).isEqualTo(wanted);
    assertThat(result.satisfied()).isEqualTo(vector.get("satisfied").asBoolean());
    assertThat(result.complete()).isEqualTo(vector.get("complete").asBoolean());
    assertThat(result.vacuous()).isEqualTo(vector.get("vacuous").asBoolean());
  }

  /** REC-5: in dry-run the record says what the barrier would have said without waiting. */
  @TestFactory
  Stream<DynamicTest> barrierRecord() throws IOException {
    return each("barrier-result", vector -> {
      if (!vector.has("error")) {
        recorded(vector);
      }
    });
  }

  private static void recorded(JsonNode vector) {
    Lines lines = new Lines(folder.resolve(vector.get("id").asText()));
    register(vector);
    Antipode.configure(Antipode.settings().mode(Mode.DRY_RUN));
    BarrierOptions options = BarrierOptions.defaults().lineage(Lineage.deserialize(vector.get("lineage").asText()));
    if (!vector.get("ask").isNull()) {
      options = options.stores(stream(vector.get("ask")).map(JsonNode::asText).toList());
    }
    if (vector.has("pending")) {
      try (LineageScope scope = LineageScope.open(options.lineage(), ScopeKind.REQUEST)) {
        assertThat(scope.isClosed()).isFalse();
        begin(vector.get("pending"));
        assertThat(Antipode.barrier(options.lineage(null)).dryRun()).isTrue();
      }
    } else {
      assertThat(Antipode.barrier(options).dryRun()).isTrue();
    }
    Lines.until(FollowRegistry::allLookedAt);
    FollowRegistry.giveUpAll();
    List<JsonNode> records = lines.of("barrier");
    assertThat(records).hasSize(1);
    JsonNode record = records.get(0);
    Map<String, String> wanted = new HashMap<>();
    vector.get("verdicts").properties().forEach(each -> wanted.put(each.getKey(), each.getValue().asText()));
    vector.get("recorded").properties().forEach(each -> wanted.put(each.getKey(), each.getValue().asText()));
    Map<String, String> verdicts = new HashMap<>();
    record.get("stores").forEach(store -> {
      verdicts.put(store.get("store").asText(), store.get("verdict").asText());
      assertThat(store.has("visible_after")).isEqualTo(store.get("verdict").asText().equals("not_yet"));
      assertThat(store.hasNonNull("visible_after")).isFalse();
    });
    assertThat(verdicts).isEqualTo(wanted);
    assertThat(record.get("satisfied").asBoolean()).isEqualTo(vector.get("satisfied").asBoolean());
    assertThat(record.get("complete").asBoolean()).isEqualTo(vector.get("complete").asBoolean());
  }

  @TestFactory
  Stream<DynamicTest> barrierPolicy() throws IOException {
    return each("barrier-policy", BarrierVectorsTest::enforced);
  }

  private static void enforced(JsonNode vector) {
    FakeShim.store("registered", server("r", "visible"));
    List<String> expected = new ArrayList<>();
    List<WriteId> ids = new ArrayList<>();
    for (JsonNode verdict : vector.get("verdicts")) {
      String store = "s" + ids.size();
      ids.add(WriteId.position(store, "e", 1));
      switch (verdict.asText()) {
        case "elsewhere" -> { }
        case "expected" -> expected.add(store);
        case "timed_out" -> FakeShim.store(store, server(store, "not_yet"));
        case "past" -> FakeShim.store(store, server(store, "visible"));
        default -> FakeShim.store(store, server(store, verdict.asText()));
      }
    }
    Antipode.configure(Antipode.settings().stores(expected));
    BarrierOptions options = BarrierOptions.defaults()
        .timeout(Duration.ofMillis(stream(vector.get("verdicts")).anyMatch(BarrierVectorsTest::isLate) ? 300 : 10_000))
        .onTimeout(Policy.of(vector.get("on_timeout").asText()))
        .onUnproven(Policy.of(vector.get("on_unproven").asText()))
        .onVacuous(Policy.of(vector.get("on_vacuous").asText()))
        .requireComplete(vector.get("require_complete").asBoolean());
    Delivery delivery = new Delivery(true, "");
    try (LineageScope message = LineageScope.open(Lineage.of(ids), ScopeKind.MESSAGE, delivery)) {
      assertThat(message.delivery()).isNotNull();
      begin(vector.path("pending"));
      ThrowingCallable call = vector.has("read") ? () -> read(vector, options, message) : () -> Antipode.barrier(options);
      Throwable error = catchThrowable(call);
      if (vector.get("outcome").asText().equals("result")) {
        assertThat(error).isNull();
        return;
      }
      assertThat(pythonName(error)).isEqualTo(vector.get("outcome").asText());
      BarrierException failure = (BarrierException) error;
      assertThat(failure.result()).isNotNull(); // BAR-43
      if (vector.has("code")) {
        assertThat(failure.code()).isEqualTo(vector.get("code").asText()); // OBS-15
      }
      if (vector.get("verdicts").get(0).asText().equals("past")) { // SHIM-48
        assertThat(failure.result().store("s0").verdict()).isEqualTo(Verdict.UNPROVEN);
        assertThat(failure.result().store("s0").kind()).isEqualTo(UnprovenKind.OTHER);
      }
      assertThat(failure.getMessage().lines().findFirst().orElse("")).endsWith(" [" + failure.code() + "]");
    }
  }

  /** What a shim does before a read of a client that waits on read (BAR-51). */
  private static void read(JsonNode vector, BarrierOptions options, LineageScope scope) {
    Antipode.configure(Antipode.settings().onTimeout(options.onTimeout()).onUnproven(options.onUnproven()));
    if (vector.get("verdicts").get(0).asText().equals("past")) {
      WaitOnRead.isPast("s0", "s0: it is past");
    } else {
      WaitOnRead.waitFirst(Registry.current().need("s0").servers(false).get(0), options.timeout(), null, scope, true);
    }
  }

  private static boolean isLate(JsonNode verdict) {
    return verdict.asText().equals("timed_out");
  }

  /** {@code BarrierTimeoutException} is BarrierTimeout there, {@code ConfigurationException} ConfigurationError. */
  static String pythonName(Throwable error) {
    String name = error.getClass().getSimpleName().replaceAll("Exception$", "");
    return error instanceof BarrierException ? name : name + "Error";
  }

  @TestFactory
  Stream<DynamicTest> epochJudge() throws IOException {
    return each("epoch-judge", vector -> {
      JsonNode server = vector.get("server");
      Visibility answer = EpochJudge.judge(
          vector.get("epoch").asText(),
          Long.parseUnsignedLong(vector.get("counter").asText()),
          server.get("epoch").asText(),
          Long.parseUnsignedLong(server.get("applied").asText()),
          ends(server.path("marks")),
          ends(server.path("known")));
      assertThat(answer.verdict().word()).isEqualTo(vector.get("answer").asText());
      assertThat(answer.unknownEpoch()).isEqualTo(vector.get("unknown_epoch").asBoolean());
      assertThat(answer.reason().isEmpty()).isEqualTo(answer.verdict() == Verdict.VISIBLE);
    });
  }

  private static Map<String, Long> ends(JsonNode said) {
    Map<String, Long> ends = new HashMap<>();
    said.properties().forEach(end -> ends.put(end.getKey(), Long.parseUnsignedLong(end.getValue().asText())));
    return ends;
  }

  @TestFactory
  Stream<DynamicTest> configurationStores() throws IOException {
    return each("configuration-stores", vector ->
        assertThat(ProcessSettings.replicasVariable(vector.get("store").asText()))
            .isEqualTo(vector.get("variable").asText()));
  }
}
