package dev.antipode.internal.diagnostics.dryrun;

import static dev.antipode.internal.diagnostics.dryrun.Counts.total;
import static dev.antipode.internal.diagnostics.dryrun.Lines.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.ScopeKind;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Json;
import dev.antipode.internal.store.Registry;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.propagation.HeaderCarrier;
import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.RequestScope;
import dev.antipode.shim.Write;
import dev.antipode.testing.AntipodeIsolated;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.EventData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import shop.Followers;

/** What could be a record a request, summaries, spans' events, and the lines themselves (spec REC, OBS). */
@ExtendWith(AntipodeIsolated.class)
class RecordsTest {
  private static final Lineage LINEAGE = Lineage.of(WriteId.position("posts", "e", 1));

  @TempDir
  Path folder;

  private final InMemorySpanExporter spans = InMemorySpanExporter.create();
  private final SdkTracerProvider tracers =
      SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(spans)).build();
  private Lines lines;
  private long minute;

  @BeforeEach
  void records() {
    lines = new Lines(folder.resolve("records"));
    minute = RecordWriter.dueEvery(TimeUnit.HOURS.toNanos(1)); // no summary in the middle of a test
  }

  @AfterEach
  void minuteAgain() {
    RecordWriter.dueEvery(minute);
  }

  private Span span(String name) {
    return tracers.get("app").spanBuilder(name).startSpan();
  }

  private static Write begun() {
    MemoryStore.named("posts").client("a");
    return Registry.current().get("posts").begin();
  }

  private static void write(LineageScope scope) {
    try (Scope current = scope.makeCurrent(); Write write = begun()) {
      write.record(new Ordered("e", 1));
    }
  }

  /** REC-17: at the end of the process what was held back is written, too. */
  @Test
  void aWriteOfAScopeThatHasEnded() {
    LineageScope scope = LineageScope.create(Lineage.EMPTY, ScopeKind.ROOT);
    scope.stop();
    for (int number = 0; number < 5; number++) {
      write(scope);
    }
    assertThat(lines.of("late_write")).hasSize(1);
    JsonNode first = lines.of("late_write").get(0);
    assertThat(first.get("store").asText()).isEqualTo("posts");
    assertThat(first.get("reason").asText()).isEqualTo("closed");
    assertThat(first.has("count")).isFalse();
    Records.end();
    assertThat(lines.of("late_write")).hasSize(2);
    assertThat(lines.of("late_write").get(1).get("count").asInt()).isEqualTo(4);
  }

  /** REC-17, PROP-16. */
  @Test
  void aWriteAfterTheHeaderHasLeft() {
    LineageScope scope = LineageScope.create(Lineage.EMPTY, ScopeKind.REQUEST);
    scope.sent();
    write(scope);
    assertThat(lines.of("late_write")).hasSize(1);
    assertThat(lines.of("late_write").get(0).get("reason").asText()).isEqualTo("sent");
  }

  /** REC-17, SCOPE-18. */
  @Test
  void aWriteInFlightOfAnotherTaskIsNoViolation() throws InterruptedException {
    List<Write> writes = new ArrayList<>();
    try (LineageScope scope = Antipode.scope()) {
      Thread other = new Thread(Antipode.carry(() -> {
        writes.add(begun());
      }));
      other.start();
      other.join();
      Antipode.serialize();
      writes.get(0).abandon();
      assertThat(scope.pending()).isEmpty();
    }
    assertThat(lines.of("concurrent_write")).hasSize(1);
    assertThat(lines.of("concurrent_write").get(0).get("store").asText()).isEqualTo("posts");
    assertThat(lines.of("concurrent_write").get(0).has("written_at")).isTrue();
    assertThat(lines.of("published_before_commit")).isEmpty();
  }

  /** REC-17. */
  @Test
  void aLineageThatBecomesIncompleteHereOrCameInSo() {
    try (LineageScope scope = Antipode.scope()) {
      scope.markIncomplete("rights", "", "posts");
    }
    try (LineageScope scope = Antipode.messageScope(LINEAGE.markedIncomplete("posts").serialize())) {
      assertThat(scope.lineage().isComplete()).isFalse();
    }
    List<JsonNode> records = lines.of("incomplete");
    assertThat(records).extracting(each -> each.get("reason").asText()).containsExactly("rights", "received");
    assertThat(records).allMatch(each -> each.get("store").asText().equals("posts"));
    assertThat(records).extracting(each -> each.get("origin").get("scope").asText()).containsExactly("root", "message");
    assertThat(records.get(0).has("site")).isTrue();
  }

  /** REC-17: what could not be read is missing from the scope that was opened for it, not from the one outside. */
  @Test
  void aMalformedRequestIsOfItsOwnScope() {
    HeaderCarrier headers = HeaderCarrier.of(Map.of("antipode-lineage", "malformed"));
    try (RequestScope request = Propagation.extractRequest(headers, "127.0.0.1")) {
      assertThat(request.scope().lineage().isComplete()).isFalse();
    }
    assertThat(lines.of("incomplete")).extracting(each -> each.get("origin").get("scope").asText()).containsExactly("request");
  }

  /** REC-17. */
  @Test
  void eachKeyIsWrittenOnceAMinuteWithItsNumber() {
    AtomicLong now = new AtomicLong(1);
    HeldRecords held = new HeldRecords(now::get);
    assertThat(held.admit("a", Map.of("n", 0))).isTrue();
    for (int number = 1; number < 4; number++) {
      assertThat(held.admit("a", Map.of("n", number))).isFalse();
    }
    assertThat(held.admit("b", Map.of("n", 0))).isTrue();
    assertThat(held.due(false)).isEmpty();
    now.addAndGet(TimeUnit.MINUTES.toNanos(1));
    assertThat(held.due(false)).containsExactly(Map.of("n", 3, "count", 3));
    assertThat(held.admit("a", Map.of("n", 4))).isFalse();
    now.addAndGet(TimeUnit.MINUTES.toNanos(1));
    assertThat(held.due(false)).containsExactly(Map.of("n", 4, "count", 1));
    now.addAndGet(TimeUnit.MINUTES.toNanos(1));
    assertThat(held.due(false)).isEmpty();
    assertThat(held.admit("a", Map.of("n", 5))).isTrue();
  }

  /** REC-17: bounded, and still counted. */
  @Test
  void soManyDifferentOnesStandTogether() {
    HeldRecords held = new HeldRecords();
    int written = 0;
    for (int number = 0; number < 1500; number++) {
      written += held.admit(number, Map.of()) ? 1 : 0;
    }
    assertThat(written).isEqualTo(1000);
    assertThat(held.due(true)).containsExactly(Map.of("count", 500));
  }

  private static void call() {
    Propagation.approve("127.0.0.1:8000").close();
  }

  /** REC-18: once a scope and site, where a barrier would have come before what the callee reads. */
  @Test
  void aLineageThatCameWithAMessageLeavesWithACall() {
    Span span = span("message");
    try (Scope current = span.makeCurrent()) {
      try (LineageScope scope = Antipode.messageScope(LINEAGE.serialize())) {
        scope.queue("notifications");
        for (int number = 0; number < 2; number++) {
          call();
        }
      }
      try (LineageScope scope = Antipode.scope(LINEAGE)) { // it has brought nothing
        call();
        assertThat(scope.hasBrought()).isFalse();
      }
    }
    try (LineageScope scope = Antipode.messageScope(LINEAGE.serialize())) { // in no trace
      call();
      assertThat(scope.hasBrought()).isTrue();
    }
    Antipode.configure(Antipode.settings().sample(0));
    try (Scope current = span.makeCurrent(); LineageScope scope = Antipode.messageScope(LINEAGE.serialize())) {
      call();
      assertThat(scope.hasBrought()).isTrue();
    }
    span.end();
    assertThat(lines.of("passed_on")).hasSize(1);
    JsonNode record = lines.of("passed_on").get(0);
    assertThat(record.get("target").asText()).isEqualTo("127.0.0.1:8000");
    assertThat(record.get("origin").get("scope").asText()).isEqualTo("message");
    assertThat(record.get("origin").get("store").asText()).isEqualTo("notifications");
    assertThat(record.get("trace_id").asText()).isEqualTo(span.getSpanContext().getTraceId());
    assertThat(total("messages")).isEqualTo(3);
  }

  /** REC-9, OBS-11: what {@code antipode check} reads from exports of traces, and no key. */
  @Test
  void theFindingIsAnEventOfTheSpanAndInItsTrace() {
    MemoryStore store = MemoryStore.named("posts").lag(Duration.ofMillis(1500));
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    Span span = span("request");
    JsonNode record;
    try (Scope current = span.makeCurrent(); LineageScope scope = Antipode.scope()) {
      writer.set("private-key", "v");
      Followers.read(reader, "private-key");
      record = lines.finding();
      assertThat(scope.isClosed()).isFalse();
    }
    span.end();
    List<EventData> events = spans.getFinishedSpanItems().get(0).getEvents();
    assertThat(events).hasSize(1);
    assertThat(events.get(0).getName()).isEqualTo("antipode.finding");
    Map<String, String> told = new HashMap<>();
    events.get(0).getAttributes().forEach((key, value) -> told.put(key.getKey(), value.toString()));
    Map<String, String> wanted = new HashMap<>();
    for (String name : List.of("kind", "site", "region", "process", "store", "server", "confirmed")) {
      wanted.put("antipode." + name, record.get(name).asText());
    }
    wanted.put("antipode.visible_after", String.valueOf(record.get("visible_after").asDouble()));
    wanted.put("antipode.store.kind", "memory");
    record.get("origin").properties().forEach(
        each -> wanted.put("antipode.origin." + each.getKey(), each.getValue().asText()));
    assertThat(told).isEqualTo(wanted);
    assertThat(events.get(0).getAttributes().get(AttributeKey.doubleKey("antipode.visible_after"))).isPositive();
    assertThat(record.get("trace_id").asText()).isEqualTo(span.getSpanContext().getTraceId());
  }

  /** REC-9, OBS-11, BAR-20. */
  @Test
  void aBarrierThatJudgesNothingIsAnEventOfTheSpan() {
    MemoryStore.named("posts").client("b");
    Span span = span("request");
    try (Scope current = span.makeCurrent();
        LineageScope scope = Antipode.scope(Lineage.of(WriteId.position("orders", "e", 1)))) {
      assertThat(Antipode.barrier().vacuous()).isTrue();
      assertThat(scope.isClosed()).isFalse();
    }
    span.end();
    List<EventData> events = spans.getFinishedSpanItems().get(0).getEvents();
    assertThat(events).extracting(event -> event.getAttributes().get(AttributeKey.stringKey("antipode.kind")))
        .containsExactly("barrier", "vacuous");
    assertThat(events.get(1).getAttributes().get(AttributeKey.stringArrayKey("antipode.lineage_stores")))
        .containsExactly("orders");
    assertThat(events.get(1).getAttributes().get(AttributeKey.stringArrayKey("antipode.registered")))
        .containsExactly("posts");
  }

  /** REC-15: a read that was not repeated by the end of the process is behind, and no finding is lost. */
  @Test
  void whatIsToBeReadAgainAtTheEndIsTold() throws InterruptedException {
    CountDownLatch began = new CountDownLatch(1);
    CountDownLatch goesOn = new CountDownLatch(1);
    List<Boolean> told = Collections.synchronizedList(new ArrayList<>());
    assertThat(Repeats.later(() -> {
      began.countDown();
      try {
        goesOn.await();
      } catch (InterruptedException error) {
        throw new AssertionError(error);
      }
      return true;
    }, told::add)).isTrue();
    assertThat(Repeats.later(() -> true, told::add)).isTrue();
    began.await();
    Records.end();
    assertThat(told).containsExactly(false, false);
    goesOn.countDown();
    assertThat(Repeats.later(() -> true, told::add)).isTrue();
    until(Repeats::nothingWaits);
    assertThat(told).as("each once").containsExactly(false, false, true);
  }

  /** REC-16, REC-19. */
  @Test
  void aSummaryCountsWhatWasSinceTheLast() {
    MemoryStore store = MemoryStore.named("posts").lag(Duration.ofMillis(1500));
    MemoryClient writer = store.client("a");
    MemoryClient reader = store.client("b");
    for (int number = 0; number < 3; number++) {
      try (LineageScope scope = Antipode.messageScope("")) {
        writer.set("k", "v" + number);
        Followers.read(reader, "k");
        Followers.barrier();
        assertThat(scope.isClosed()).isFalse();
      }
    }
    Lines.settled();
    until(() -> total("behind") + total("stale") == 3);
    Records.end();
    reader.get("k");
    Records.end();
    Records.end(); // nothing since
    List<JsonNode> summaries = lines.of("summary");
    assertThat(summaries).hasSize(2);
    Map<String, Integer> totals = new HashMap<>();
    for (JsonNode count : summaries.get(0).get("counts")) {
      String what = count.get("what").asText();
      totals.merge(what, count.get("count").asInt(), Integer::sum);
      if (List.of("barriers", "followed_reads", "behind", "stale").contains(what)) {
        assertThat(count.get("site").asText()).startsWith("shop/Followers.java:");
      }
      assertThat(count.has("store")).isEqualTo(!List.of("barriers", "messages").contains(what));
    }
    int found = totals.getOrDefault("behind", 0) + totals.getOrDefault("stale", 0);
    totals.remove("behind");
    totals.remove("stale");
    assertThat(found).isEqualTo(3);
    assertThat(totals)
        .isEqualTo(Map.of("messages", 3, "reads", 3, "followed_reads", 3, "barriers", 3, "writes", 3));
    assertThat(summaries.get(1).get("since")).isEqualTo(summaries.get(0).get("time"));
    assertThat(summaries.get(0).get("sample").asDouble()).isEqualTo(1.0);
    assertThat(summaries.get(1).get("counts").toString())
        .isEqualTo("[{\"what\":\"reads\",\"store\":\"posts\",\"count\":1}]");
  }

  /** REC-16: also of a process that finds nothing. */
  @Test
  void aSummaryComesEveryMinute() {
    long before = RecordWriter.dueEvery(TimeUnit.MILLISECONDS.toNanos(50));
    try {
      MemoryStore.named("posts").client("b").get("k");
      until(() -> !lines.of("summary").isEmpty());
    } finally {
      RecordWriter.dueEvery(before);
    }
  }

  /** REC-12: the last 7 octets of its id, as a share of 2^56. */
  @ParameterizedTest
  @CsvSource({
      "0000000000000000003fffffffffffff, true", "0000000000000000003ffffffffffff0, true",
      "00000000000000abc040000000000000, false", "ffffffffffffffffffffffffffffffff, false",
      "ffffffffffffffffff00000000000000, true"})
  void theTraceDecidesForEveryProcessAlike(String trace, boolean sampled) {
    assertThat(Records.isSampled(trace, 0.25)).isEqualTo(sampled);
  }

  /** REC-14. */
  @Test
  void digestsAreOfPlainDataAlone() {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("a", 1L);
    map.put("b", new LinkedHashSet<>(List.of(2, 3)));
    Map<String, Object> turned = new LinkedHashMap<>();
    turned.put("b", new LinkedHashSet<>(List.of(3, 2)));
    turned.put("a", 1L);
    assertThat(Digests.of(map)).isEqualTo(Digests.of(turned));
    List<Object> different = new ArrayList<>(List.of(
        1L, true, "a", "a".getBytes(StandardCharsets.UTF_8), "1", new byte[0], "", List.of(), Map.of(),
        List.of(1, 2), List.of(2, 1), List.of(List.of(1), 2), List.of(1, List.of(2)), Map.of(1, 2), Map.of(2, 1),
        Set.of()));
    different.add(null);
    Set<String> digests = new LinkedHashSet<>();
    different.forEach(each -> digests.add(Arrays.toString(Digests.of(each))));
    assertThat(digests).hasSameSizeAs(different).doesNotContain("null");
    assertThat(Digests.of(new Object())).isNull();
    assertThat(Digests.of(List.of(new Object()))).isNull();
    assertThat(Digests.of(new byte[Digests.MOST_OCTETS + 1])).isNull();
    List<Object> deep = List.of();
    for (int number = 0; number < 100; number++) {
      deep = List.of(deep);
    }
    assertThat(Digests.of(deep)).isNull();
  }

  /** REC-1: as the other languages write it, in ASCII, and numbers without an exponent. */
  @Test
  void linesAreTheSameOctetsAsInOtherLanguages() {
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("record", 1);
    record.put("time", 1795400000.25);
    record.put("site", "a/\u00e9\"\\\n\u007f\ud83d\ude00.java:1");
    record.put("visible_after", null);
    record.put("satisfied", true);
    record.put("servers", List.of("a", "b"));
    record.put("origin", Map.of());
    assertThat(Json.line(record)).isEqualTo("{\"record\":1,\"time\":1795400000.25,\"site\":\"a/\\u00e9\\\"\\\\\\n\\u007f"
        + "\\ud83d\\ude00.java:1\",\"visible_after\":null,\"satisfied\":true,\"servers\":[\"a\",\"b\"],\"origin\":{}}");
  }
}
