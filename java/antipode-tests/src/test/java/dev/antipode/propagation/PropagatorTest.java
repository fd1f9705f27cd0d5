package dev.antipode.propagation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Keys;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Observed;
import dev.antipode.ScopeKind;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.internal.propagation.AntipodeAutoConfiguration;
import dev.antipode.testing.AntipodeIsolated;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.BaggageBuilder;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;
import io.opentelemetry.sdk.autoconfigure.spi.ConfigurablePropagatorProvider;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The propagator round the application's own (PROP-3, PROP-7 to PROP-10, PROP-24, TRUST-5, TRUST-25). */
@ExtendWith(AntipodeIsolated.class)
@SuppressWarnings("deprecation") // Jaeger's format, for code that is still on its clients
class PropagatorTest {
  private static final String TEXT = "1~blog-posts..8371ab90c2d4e6f1.1042";
  private static final WriteId WRITE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042);
  private static final TextMapPropagator JAEGER =
      io.opentelemetry.extension.trace.propagation.JaegerPropagator.getInstance();
  private static final TextMapPropagator BOTH = TextMapPropagator.composite(
      W3CTraceContextPropagator.getInstance(), W3CBaggagePropagator.getInstance());
  private static final TextMapGetter<Map<String, String>> GETTER = new TextMapGetter<>() {
    @Override
    public Iterable<String> keys(Map<String, String> carrier) {
      return carrier.keySet();
    }

    @Override
    public String get(Map<String, String> carrier, String key) {
      return carrier == null ? null : carrier.get(key);
    }
  };

  @AfterEach
  void nothingIsGlobal() {
    GlobalOpenTelemetry.resetForTest();
  }

  private static void global(TextMapPropagator propagator) {
    GlobalOpenTelemetry.resetForTest();
    GlobalOpenTelemetry.set(OpenTelemetry.propagating(ContextPropagators.create(propagator)));
  }

  private static TextMapPropagator global() {
    return GlobalOpenTelemetry.getPropagators().getTextMapPropagator();
  }

  private static Map<String, String> injected() {
    Map<String, String> carrier = new HashMap<>();
    global().inject(Context.current(), carrier, Map::put);
    return carrier;
  }

  private static Context extracted(Map<String, String> carrier) {
    return global().extract(Context.root(), carrier, GETTER);
  }

  /** PROP-3, TRUST-5: moved out of the baggage, and only our injector writes it again. */
  @Test
  void extractingMovesTheLineageOutOfBaggage() {
    global(AntipodePropagator.round(BOTH));
    Context context = extracted(Map.of("baggage", "user=7,antipode=" + TEXT));
    assertThat(Baggage.fromContext(context).asMap().keySet()).containsExactly("user");
    assertThat(AntipodePropagator.arrived(context)).containsExactly(TEXT);
    assertThat(LineageScope.in(context)).isNull();
    try (Scope current = context.makeCurrent()) {
      assertThat(injected()).isEqualTo(Map.of("baggage", "user=7"));
    }
  }

  @Test
  void extractingKeepsTheScopeOfTheFilterButNotOneThatHasEnded() {
    global(AntipodePropagator.round(BOTH));
    Antipode.configure(Settings.defaults().trust(Trust.ALL));
    LineageScope running = LineageScope.create(Lineage.EMPTY, ScopeKind.REQUEST);
    Context given = running.storeInContext(Context.root());
    Map<String, String> carrier = Map.of("antipode-lineage", TEXT);
    assertThat(LineageScope.in(global().extract(given, carrier, GETTER))).isSameAs(running);
    running.stop();
    assertThat(LineageScope.in(global().extract(given, carrier, GETTER)).lineage()).isEqualTo(Lineage.of(WRITE));
  }

  @ParameterizedTest
  @EnumSource(value = Trust.class, names = {"ALL", "KEY"})
  void whereTrustNeedsNoPeerExtractingOpensAScope(Trust trust) {
    global(AntipodePropagator.round(BOTH));
    Settings settings = Settings.defaults().trust(trust);
    Antipode.configure(trust == Trust.KEY ? settings.keys(Keys.of(Map.of("one", new byte[32]))) : settings);
    Map<String, String> carrier;
    try (LineageScope scope = Antipode.scope(Lineage.of(WRITE)); Scope approved = Propagation.approve("b")) {
      carrier = injected();
    }
    assertThat(LineageScope.in(extracted(carrier)).lineage()).isEqualTo(Lineage.of(WRITE));
  }

  /** TRUST-25. */
  @Test
  void injectingNeedsAnApproval() {
    global(AntipodePropagator.round(BOTH));
    try (Observed observed = new Observed(); LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
      assertThat(injected()).isEmpty();
      assertThat(observed.linesWith("Propagation.approve")).hasSize(1);
      try (Scope refused = Propagation.approve("api.example.com")) {
        assertThat(injected()).isEmpty();
      }
      assertThat(observed.linesWith("ANTIPODE_PEERS")).hasSize(1);
      try (Scope approved = Propagation.approve("b")) {
        assertThat(injected()).isEqualTo(Map.of("baggage", "antipode=" + TEXT));
      }
      try (Scope hooks = Propagation.approved(null)) {
        assertThat(injected()).isEmpty();
      }
      Antipode.configure(Settings.defaults().trust(Trust.ALL));
      assertThat(injected()).isEqualTo(Map.of("baggage", "antipode=" + TEXT));
    }
  }

  /** PROP-8, PROP-9, PROP-10: as the last member, never in the place of another. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 63, 64})
  void thePropagatorKeepsTheLimits(int members) {
    global(AntipodePropagator.round(BOTH));
    BaggageBuilder baggage = Baggage.builder();
    for (int number = 0; number < members; number++) {
      baggage.put("k" + number, "a b");
    }
    try (Scope current = baggage.build().makeCurrent();
        LineageScope scope = Antipode.scope(Lineage.of(WRITE));
        Scope approved = Propagation.approve("b")) {
      Map<String, String> carrier = injected();
      String[] found = carrier.get("baggage").split(",");
      assertThat(found).hasSize(Math.min(members + 1, 64));
      if (members < 64) {
        assertThat(carrier).containsOnlyKeys("baggage");
        assertThat(found[members]).isEqualTo("antipode=" + TEXT);
      } else {
        assertThat(carrier.get("baggage")).doesNotContain("antipode=");
        assertThat(carrier).containsEntry("antipode-lineage", TEXT);
      }
    }
  }

  /** PROP-7. */
  @Test
  void jaegersFormatIsReadAndWritten() {
    SpanContext span = SpanContext.create(
        "0".repeat(31) + "1", "0".repeat(15) + "2", TraceFlags.getDefault(), TraceState.getDefault());
    for (TextMapPropagator own : List.of(AntipodePropagator.round(JAEGER), JAEGER)) {
      global(own);
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE));
          Scope current = Span.wrap(span).makeCurrent();
          Scope approved = Propagation.approve("b")) {
        Map<String, String> headers = new HashMap<>();
        Propagation.injectRequest(HeaderCarrier.of(headers), "b");
        assertThat(headers).isEqualTo(Map.of("uberctx-antipode", TEXT));
        if (own instanceof AntipodePropagator) {
          assertThat(injected()).containsOnlyKeys("uber-trace-id", "uberctx-antipode");
        }
      }
    }
    Map<String, String> escaped = Map.of("uberctx-antipode", TEXT.replace("~", "%7E"));
    try (RequestScope request = Propagation.extractRequest(HeaderCarrier.of(escaped), "127.0.0.1")) {
      assertThat(request.scope().lineage()).isEqualTo(Lineage.of(WRITE));
    }
  }

  /** PROP-9: beside others it has its own header, and leaves it where one of them carries the lineage. */
  @Test
  void besideOthers() {
    try (LineageScope scope = Antipode.scope(Lineage.of(WRITE)); Scope approved = Propagation.approve("b")) {
      global(TextMapPropagator.composite(W3CTraceContextPropagator.getInstance(), AntipodePropagator.beside()));
      assertThat(injected()).isEqualTo(Map.of("antipode-lineage", TEXT));
      global(TextMapPropagator.composite(
          AntipodePropagator.round(W3CBaggagePropagator.getInstance()), AntipodePropagator.beside()));
      assertThat(injected()).isEqualTo(Map.of("baggage", "antipode=" + TEXT));
      global(AntipodePropagator.round(global()));
      assertThat(injected()).isEqualTo(Map.of("baggage", "antipode=" + TEXT)); // round itself it writes once
    }
  }

  /** PROP-24: an instrumentation inside of the hook, which knows nothing of us, writes the header anew. */
  @Test
  void anInstrumentationInsideOfTheHookKeepsTheLineage() {
    global(BOTH);
    try (Scope baggage = Baggage.builder().put("user", "7").build().makeCurrent();
        LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
      try (Scope call = Propagation.approved(TEXT)) {
        assertThat(injected().get("baggage").split(",")).containsExactlyInAnyOrder("user=7", "antipode=" + TEXT);
      }
      assertThat(injected()).isEqualTo(Map.of("baggage", "user=7"));
      try (Scope call = Propagation.approved(null)) {
        assertThat(injected()).isEqualTo(Map.of("baggage", "user=7"));
      }
    }
  }

  /** The words of OTEL_PROPAGATORS, and going round by itself, are found by their services. */
  @Test
  void theServicesAreFound() {
    assertThat(ServiceLoader.load(ConfigurablePropagatorProvider.class))
        .anyMatch(provider -> provider.getName().equals("antipode")
            && provider.getPropagator(null) instanceof AntipodePropagator);
    assertThat(ServiceLoader.load(AutoConfigurationCustomizerProvider.class))
        .anyMatch(AntipodeAutoConfiguration.class::isInstance);
  }

  @Test
  void carriersMayBeAbsent() {
    global(AntipodePropagator.round(BOTH));
    assertThat(global().extract(Context.root(), null, GETTER)).isNotNull();
    global().inject(Context.current(), null, (carrier, key, value) -> {});
    assertThat(global().fields()).contains("baggage", "traceparent", "antipode-lineage");
  }
}
