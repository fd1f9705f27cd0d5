package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import app.Application;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierTimeoutException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.observer.Observers;
import dev.antipode.observer.Outcome;
import dev.antipode.observer.TelemetryTarget;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.data.LongPointData;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.testing.exporter.InMemoryMetricReader;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Metrics and spans, by name, kind, unit and attributes, through OpenTelemetry's own SDK (chapter OBS). */
@ExtendWith(AntipodeIsolated.class)
class TelemetryTest {
  private static final BarrierOptions PATIENT = BarrierOptions.defaults().timeout(Duration.ofSeconds(20));

  private final InMemorySpanExporter spans = InMemorySpanExporter.create();
  private final InMemoryMetricReader metrics = InMemoryMetricReader.create();
  private OpenTelemetrySdk sdk;

  @BeforeEach
  void install() {
    sdk = OpenTelemetrySdk.builder()
        .setTracerProvider(
            SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(spans)).build())
        .setMeterProvider(SdkMeterProvider.builder().registerMetricReader(metrics).build())
        .build();
    TelemetryTarget.use(sdk);
  }

  @AfterEach
  void remove() {
    TelemetryTarget.use(null);
    sdk.close();
  }

  private List<SpanData> spans(String name) {
    return spans.getFinishedSpanItems().stream().filter(span -> span.getName().equals(name)).toList();
  }

  private Map<String, MetricData> collected() {
    Collection<MetricData> all = metrics.collectAllMetrics();
    return all.stream().collect(Collectors.toMap(MetricData::getName, metric -> metric));
  }

  /** The values of a counter by one attribute. */
  private Map<String, Long> counts(String name, String attribute) {
    Map<String, Long> counts = new TreeMap<>();
    MetricData metric = collected().get(name);
    if (metric != null) {
      for (LongPointData point : metric.getLongSumData().getPoints()) {
        counts.merge(
            point.getAttributes().get(AttributeKey.stringKey("antipode." + attribute)), point.getValue(), Long::sum);
      }
    }
    return counts;
  }

  private static Map<String, Object> attributes(SpanData span) {
    Map<String, Object> found = new TreeMap<>();
    span.getAttributes().forEach((key, value) -> found.put(key.getKey(), value));
    return found;
  }

  /** OBS-1, OBS-4, OBS-6. */
  @Test
  void aBarrierThatWaitedHasASpanWithOneChildAStore() {
    Antipode.configure(Settings.defaults().region("b"));
    MemoryStore store = MemoryStore.named("blog-posts").lag(Duration.ofMillis(50));
    MemoryClient writer = store.client("a");
    store.client("b");
    MemoryStore.named("seen").regions("a").client("a");
    Span request = sdk.getTracer("app").spanBuilder("request").startSpan();
    try (Scope current = request.makeCurrent(); LineageScope scope = Antipode.scope()) {
      assertThat(current).isNotNull();
      writer.set("post:42", "hi");
      scope.append(WriteId.position("user-acl", "e", 1));
      Application.barrier(PATIENT);
    }
    request.end();
    assertThat(spans("antipode.barrier")).hasSize(1);
    assertThat(spans("antipode.wait")).hasSize(1);
    SpanData barrier = spans("antipode.barrier").get(0);
    SpanData wait = spans("antipode.wait").get(0);
    assertThat(attributes(barrier)).isEqualTo(Map.of(
        "antipode.satisfied", true,
        "antipode.complete", false, // user-acl is elsewhere
        "antipode.reach", "region",
        "antipode.region", "b",
        "antipode.dry_run", false,
        "antipode.policy", "raise",
        "antipode.site", Application.site()));
    assertThat(attributes(wait)).isEqualTo(Map.of(
        "antipode.store", "blog-posts",
        "antipode.store.kind", "memory",
        "antipode.verdict", "visible",
        "antipode.reach", "region",
        "antipode.region", "b"));
    assertThat(barrier.getParentSpanId()).isEqualTo(request.getSpanContext().getSpanId());
    assertThat(wait.getParentSpanId()).isEqualTo(barrier.getSpanId());
    assertThat(barrier.getStatus().getStatusCode()).isEqualTo(StatusCode.UNSET);
  }

  /** OBS-2: names, kinds and units. */
  @Test
  void whatWaitsIsMeasuredByTheNamesOfTheSpecification() {
    MemoryStore store = MemoryStore.named("blog-posts").lag(Duration.ofMillis(50));
    store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      store.client("a").set("post:42", "hi");
      assertThat(Antipode.barrierAsync(PATIENT).join().satisfied()).isTrue();
      assertThat(scope.lineage().isEmpty()).isFalse();
    }
    Map<String, MetricData> found = collected();
    for (String name : List.of("antipode.barrier.duration", "antipode.wait.duration", "antipode.replica.lag")) {
      assertThat(found.get(name).getUnit()).isEqualTo("s");
      assertThat(found.get(name).getHistogramData().getPoints()).hasSize(1);
    }
    assertThat(counts("antipode.barrier.count", "outcome")).isEqualTo(Map.of("satisfied", 1L));
    assertThat(counts("antipode.barrier.waiting", "store")).isEqualTo(Map.of("blog-posts", 0L));
    assertThat(counts("antipode.wait.requests", "purpose")).containsKey("wait");
    assertThat(spans("antipode.barrier").get(0).getAttributes().get(AttributeKey.stringKey("antipode.site")))
        .as("nothing of ours is a site").isNotNull();
    Observers.events().onMarksMissing("blog-posts", "rights"); // EPOCH-26
    assertThat(collected().get("antipode.marks.missing").getLongGaugeData().getPoints()).hasSize(1);
    Observers.events().onMarksMissing("blog-posts", null);
    assertThat(collected()).doesNotContainKey("antipode.marks.missing");
  }

  /** OBS-4. */
  @Test
  void aBarrierThatFailsSetsErrorType() {
    MemoryStore store = MemoryStore.named("blog-posts");
    store.client("b");
    store.freeze("b");
    try (LineageScope scope = Antipode.scope()) {
      store.client("a").set("k", "v");
      assertThat(scope.lineage().isEmpty()).isFalse();
      assertThatThrownBy(() -> Antipode.barrier(PATIENT.timeout(Duration.ofMillis(50))))
          .isInstanceOf(BarrierTimeoutException.class);
    }
    for (String name : List.of("antipode.barrier", "antipode.wait")) {
      SpanData span = spans(name).get(0);
      assertThat(span.getAttributes().get(AttributeKey.stringKey("error.type"))).isEqualTo("timed_out");
      assertThat(span.getStatus().getStatusCode()).isEqualTo(StatusCode.ERROR);
    }
    assertThat(collected()).doesNotContainKey("antipode.replica.lag");
  }

  @Test
  void eachOutcomeIsCountedOnce() {
    FakeShim.store("lost-store", new Fake("lost", FakeShim.always(Visibility.unproven("gone"))));
    FakeShim.store("well-store", new Fake("well", FakeShim.always(Visibility.VISIBLE)));
    FakeShim.store("late-store", new Fake("late", FakeShim.always(Visibility.NOT_YET)));
    assertThat(outcomes(object("well-store"), PATIENT)).isEqualTo(Map.of("satisfied", 1L));
    assertThat(outcomes(object("lost-store"), PATIENT)).isEqualTo(Map.of("unproven", 1L));
    BarrierOptions brief = PATIENT.timeout(Duration.ofMillis(50));
    assertThat(outcomes(object("late-store"), brief)).isEqualTo(Map.of("timed_out", 1L));
    assertThat(outcomes(object("elsewhere"), PATIENT)).isEqualTo(Map.of("vacuous", 1L));
    assertThat(outcomes(Lineage.EMPTY, PATIENT)).isEqualTo(Map.of("free", 1L));
    Antipode.configure(Settings.defaults().maxWaiters(0));
    assertThat(outcomes(object("late-store"), PATIENT)).isEqualTo(Map.of("overloaded", 1L));
  }

  private static Lineage object(String store) {
    return Lineage.of(new WriteId(store, "k", new Ordered("", 1)));
  }

  private Map<String, Long> outcomes(Lineage lineage, BarrierOptions options) {
    Map<String, Long> before = counts("antipode.barrier.count", "outcome");
    Antipode.barrier(options.lineage(lineage).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED));
    Map<String, Long> after = counts("antipode.barrier.count", "outcome");
    before.forEach((outcome, count) -> after.merge(outcome, -count, Long::sum));
    after.values().removeIf(count -> count == 0);
    return after;
  }

  /** OBS-9, BAR-35. */
  @Test
  void theFreePathStartsNoSpanAndCallsNoInstrument() {
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ofSeconds(60)));
    MemoryStore store = MemoryStore.named("blog-posts").lag(Duration.ofMillis(10));
    store.client("b");
    try (LineageScope scope = Antipode.scope()) {
      store.client("a").set("k", "v");
      Antipode.barrier(PATIENT);
      int before = spans.getFinishedSpanItems().size();
      long points = durations();
      long free = Outcome.FREE.counted();
      Antipode.barrier();
      assertThat(Antipode.barrierAsync().isDone()).isTrue();
      try (LineageScope other = Antipode.scope(scope.lineage())) { // another scope, by the watermarks
        assertThat(other).isNotNull();
        Antipode.barrier();
      }
      assertThat(Outcome.FREE.counted()).isEqualTo(free + 3);
      assertThat(spans.getFinishedSpanItems()).hasSize(before);
      assertThat(durations()).isEqualTo(points);
    }
  }

  private long durations() {
    return collected().get("antipode.barrier.duration").getHistogramData().getPoints().stream()
        .mapToLong(point -> point.getCount())
        .sum();
  }
}
