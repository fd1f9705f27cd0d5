package dev.antipode.http;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Opaque;
import dev.antipode.WriteId;
import dev.antipode.propagation.AntipodePropagator;
import dev.antipode.propagation.Propagation;
import dev.antipode.testing.AntipodeIsolated;
import io.jaegertracing.internal.JaegerSpan;
import io.jaegertracing.internal.JaegerTracer;
import io.jaegertracing.internal.reporters.InMemoryReporter;
import io.jaegertracing.internal.samplers.ConstSampler;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.baggage.propagation.W3CBaggagePropagator;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.extension.trace.propagation.JaegerPropagator;
import io.opentracing.propagation.Format;
import io.opentracing.propagation.TextMapAdapter;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Services on Jaeger's clients and on OpenTelemetry hand a lineage to each other, by real sockets (PROP-7 to PROP-11). */
@ExtendWith(AntipodeIsolated.class)
@SuppressWarnings("deprecation") // Jaeger's format, for code that is still on its clients
class JaegerTest {
  private static final WriteId BEFORE = new WriteId("blog posts", Key.of("a b%c~d"), new Opaque("v~1"));
  private static final WriteId AFTER = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57);
  private static final String TEXT = Lineage.of(BEFORE).serialize();
  // Nothing to escape: OpenTelemetry for Java leaves as it is what a Jaeger client escaped.
  private static final Map<String, String> WORDS = Map.of("tenant", "acme");
  private static final Logger CATALINA = Logger.getLogger("org.apache");
  private static final List<Seen> SEEN = new CopyOnWriteArrayList<>();
  private static final TextMapGetter<Map<String, String>> GETTER = new TextMapGetter<>() {
    @Override
    public Iterable<String> keys(Map<String, String> carrier) {
      return carrier.keySet();
    }

    @Override
    public String get(Map<String, String> carrier, String key) {
      return carrier.get(key);
    }
  };

  private static Tomcat tomcat;
  private static String base;

  /** What a service saw: the lineage that came in (null: it knows of none), its trace and its span's baggage. */
  private record Seen(Kind kind, String came, String trace, Map<String, String> baggage) {}

  /** How a service traces and calls. */
  enum Kind {
    /** By a Jaeger client, with Antipode. */
    JAEGER,
    /** By a Jaeger client, and nothing of ours. */
    PLAIN,
    /** By OpenTelemetry in Jaeger's format, with our client. */
    HOOK,
    /** By OpenTelemetry in Jaeger's format, with our propagator round it. */
    PROPAGATOR,
    /** The same with W3C's baggage beside it. */
    BOTH;

    private final JaegerTracer tracer = new JaegerTracer.Builder("service")
        .withReporter(new InMemoryReporter())
        .withSampler(new ConstSampler(true))
        .build();
    private final HttpClient client = HttpClient.newHttpClient();

    private TextMapPropagator propagator() {
      TextMapPropagator jaeger = JaegerPropagator.getInstance();
      return switch (this) {
        case HOOK -> jaeger;
        case BOTH ->
            AntipodePropagator.round(TextMapPropagator.composite(jaeger, W3CBaggagePropagator.getInstance()));
        default -> AntipodePropagator.round(jaeger);
      };
    }

    private HttpClient client() {
      return this == JAEGER || this == HOOK ? AntipodeHttp.wrap(client) : client;
    }

    /** Handles a request in a span of its own; gives the headers of the call that follows. */
    Map<String, String> trace(Map<String, String> headers, Map<String, String> words, String came) {
      Map<String, String> sent = new HashMap<>();
      if (this == JAEGER || this == PLAIN) {
        JaegerSpan span = tracer.buildSpan("handle")
            .asChildOf(tracer.extract(Format.Builtin.HTTP_HEADERS, new TextMapAdapter(headers)))
            .start();
        words.forEach(span::setBaggageItem);
        tracer.inject(span.context(), Format.Builtin.HTTP_HEADERS, new TextMapAdapter(sent));
        Map<String, String> baggage = new HashMap<>();
        span.context().baggageItems().forEach(item -> baggage.put(item.getKey(), item.getValue()));
        SEEN.add(new Seen(this, came, padded(span.context().getTraceId()), baggage));
        span.finish();
        return sent;
      }
      Context context = propagator().extract(Context.current(), headers, GETTER);
      SpanContext parent = Span.fromContext(context).getSpanContext();
      String trace = parent.isValid() ? parent.getTraceId() : "4bf92f3577b34da6a3ce929d0e0e4736";
      context = context.with(Span.wrap(
          SpanContext.create(trace, "00f067aa0ba902b7", TraceFlags.getSampled(), TraceState.getDefault())));
      var baggage = Baggage.fromContext(context).toBuilder();
      words.forEach(baggage::put);
      context = context.with(baggage.build());
      Map<String, String> held = new HashMap<>();
      Baggage.fromContext(context).forEach((key, entry) -> held.put(key, entry.getValue()));
      SEEN.add(new Seen(this, came, trace, held));
      try (Scope current = context.makeCurrent();
          Scope approved = this == HOOK ? Scope.noop() : Propagation.approve("localhost")) {
        propagator().inject(Context.current(), sent, Map::put);
      }
      return sent;
    }

    private static String padded(String trace) {
      return "0".repeat(32 - trace.length()) + trace;
    }
  }

  /** Each service writes its own, and calls those that the request names, one by the other. */
  private static final class Service extends HttpServlet {
    private static final long serialVersionUID = 1L;
    private final Kind kind;

    Service(Kind kind) {
      this.kind = kind;
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
      Map<String, String> headers = new HashMap<>();
      Collections.list(request.getHeaderNames()).forEach(name -> headers.put(name.toLowerCase(), request.getHeader(name)));
      LineageScope scope = LineageScope.current();
      String came = scope == null ? null : scope.lineage().serialize();
      boolean first = request.getParameter("first") != null;
      if (scope != null) {
        Antipode.append(first ? BEFORE : AFTER);
      }
      Map<String, String> sent = kind.trace(headers, first ? WORDS : Map.of(), came);
      String next = request.getParameter("next");
      if (next != null && !next.isEmpty()) {
        call(kind.client(), next, "", sent);
      }
      response.getWriter().print(scope == null ? "" : scope.lineage().serialize());
    }
  }

  private static String call(HttpClient client, String path, String first, Map<String, String> headers) throws IOException {
    int slash = path.indexOf('/');
    String kind = slash < 0 ? path : path.substring(0, slash);
    String rest = slash < 0 ? "" : path.substring(slash + 1);
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + "/" + kind + "?next=" + rest + first))
        .timeout(Duration.ofSeconds(30));
    headers.forEach(request::header);
    try {
      return client.send(request.build(), BodyHandlers.ofString()).body();
    } catch (InterruptedException interrupted) {
      throw new AssertionError(interrupted);
    }
  }

  private static String asked(Kind... path) throws IOException {
    String names = String.join("/", Stream.of(path).map(Kind::name).toList());
    return call(HttpClient.newHttpClient(), names, "&first=yes", Map.of());
  }

  @BeforeAll
  static void start(@TempDir Path folder) throws Exception {
    CATALINA.setLevel(Level.SEVERE);
    tomcat = new Tomcat();
    tomcat.setBaseDir(folder.toString());
    tomcat.setPort(0);
    tomcat.getConnector().setProperty("address", "127.0.0.1");
    var context = tomcat.addContext("", folder.toString());
    FilterDef filter = new FilterDef();
    filter.setFilterName("antipode");
    filter.setFilter(new AntipodeFilter());
    context.addFilterDef(filter);
    for (Kind kind : Kind.values()) {
      Tomcat.addServlet(context, kind.name(), new Service(kind));
      context.addServletMappingDecoded("/" + kind, kind.name());
      if (kind != Kind.PLAIN) {
        FilterMap mapping = new FilterMap();
        mapping.setFilterName("antipode");
        mapping.addURLPatternDecoded("/" + kind);
        context.addFilterMap(mapping);
      }
    }
    tomcat.start();
    base = "http://localhost:" + tomcat.getConnector().getLocalPort();
  }

  @AfterAll
  static void stop() throws Exception {
    tomcat.stop();
    tomcat.destroy();
  }

  @BeforeEach
  void forget() {
    SEEN.clear();
  }

  static Stream<Arguments> pairs() {
    List<Kind> ours = Stream.of(Kind.values()).filter(kind -> kind != Kind.PLAIN).toList();
    List<Arguments> pairs = new ArrayList<>();
    ours.forEach(one -> ours.forEach(other -> pairs.add(Arguments.of(one, other))));
    return pairs.stream();
  }

  /** PROP-7, PROP-10: a service with a Jaeger client alone in between shows what was written, and passes it on (PROP-11). */
  @ParameterizedTest
  @MethodSource("pairs")
  void throughAServiceWithAJaegerClientAlone(Kind first, Kind last) throws Exception {
    asked(first, Kind.PLAIN, last);
    assertThat(SEEN).extracting(Seen::kind).containsExactly(first, Kind.PLAIN, last);
    assertThat(SEEN).extracting(Seen::came).containsExactly("1", null, TEXT);
    assertThat(SEEN).extracting(Seen::trace).containsOnly(SEEN.get(0).trace());
    assertThat(SEEN.get(1).baggage()).isEqualTo(Map.of("tenant", "acme", "antipode", TEXT));
    assertThat(SEEN.get(2).baggage()).isEqualTo(WORDS);
  }

  /** PROP-7, PROP-13, PROP-14: there, and by our client back again. */
  @ParameterizedTest
  @MethodSource("pairs")
  void thereAndBack(Kind first, Kind second) throws Exception {
    String lineage = asked(first, second);
    boolean hooked = first == Kind.JAEGER || first == Kind.HOOK;
    assertThat(lineage).isEqualTo((hooked ? Lineage.of(BEFORE, AFTER) : Lineage.of(BEFORE)).serialize());
    assertThat(SEEN).extracting(Seen::came).containsExactly("1", TEXT);
    assertThat(SEEN).extracting(Seen::trace).containsOnly(SEEN.get(0).trace());
    assertThat(SEEN.get(1).baggage()).isEqualTo(WORDS);
  }
}
