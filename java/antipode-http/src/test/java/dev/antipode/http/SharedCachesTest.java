package dev.antipode.http;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.startup.Tomcat;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.tomcat.util.descriptor.web.ErrorPage;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.client.RestClientResponseException;
import org.springframework.web.client.RestTemplate;

/** Answers that shared caches may keep, and those that look like a gateway's: what the caller knows, through Tomcat. */
@ExtendWith(AntipodeIsolated.class)
class SharedCachesTest {
  private static final WriteId WRITTEN = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57);
  private static final Lineage MARK = Lineage.EMPTY.markedIncomplete();
  private static final Logger CATALINA = Logger.getLogger("org.apache");

  private static Tomcat tomcat;
  private static String base;

  private final HttpClient client = AntipodeHttp.wrap(HttpClient.newHttpClient());

  /** What it does is in the parameters. */
  private static final class Application extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
      for (String header : List.of("Cache-Control", "Content-Location", "antipode-lineage")) {
        Optional.ofNullable(request.getParameter(header)).ifPresent(value -> response.setHeader(header, value));
      }
      if (request.getParameter("modified") != null) {
        response.setDateHeader("Last-Modified", 784_111_777_000L);
      }
      if (request.getParameter("writes") != null) {
        Antipode.append(WRITTEN);
      }
      if (request.getParameter("late") != null) {
        answerLate(request);
        return;
      }
      if (request.getParameter("prints") != null) {
        response.setContentType("text/plain;charset=utf-8");
        response.getWriter().print("half of an answer");
      }
      int status = Optional.ofNullable(request.getParameter("status")).map(Integer::parseInt).orElse(200);
      if (request.getParameter("error") != null) {
        response.sendError(status);
      } else {
        response.setStatus(status);
      }
    }
  }

  /** What a framework does for work that takes too long; the work itself would go on. */
  private static void answerLate(HttpServletRequest request) {
    AsyncContext asynchronous = request.startAsync();
    asynchronous.setTimeout(10);
    asynchronous.addListener(new AsyncListener() {
      @Override
      public void onTimeout(AsyncEvent event) throws IOException {
        ((HttpServletResponse) asynchronous.getResponse()).sendError(503);
        asynchronous.complete();
      }

      @Override
      public void onComplete(AsyncEvent event) {}

      @Override
      public void onError(AsyncEvent event) {}

      @Override
      public void onStartAsync(AsyncEvent event) {}
    });
  }

  /** Another method than came in, as browsers' forms ask for it. */
  private static final class HiddenMethod implements Filter {
    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
        throws IOException, ServletException {
      String method = request.getParameter("method");
      chain.doFilter(method == null ? request : new HttpServletRequestWrapper((HttpServletRequest) request) {
        @Override
        public String getMethod() {
          return method;
        }
      }, response);
    }
  }

  /** The page of an error, which caches may keep. */
  private static final class KeptPage extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
      if (request.getParameter("kept") != null) {
        response.setHeader("Cache-Control", "max-age=60");
      }
      response.getWriter().print("sorry".repeat(request.getParameter("large") == null ? 1 : 100_000));
    }
  }

  @BeforeAll
  static void start(@TempDir Path folder) throws Exception {
    CATALINA.setLevel(Level.SEVERE);
    tomcat = new Tomcat();
    tomcat.setBaseDir(folder.toString());
    tomcat.setPort(0);
    tomcat.getConnector().setProperty("address", "127.0.0.1");
    Context context = tomcat.addContext("", folder.toString());
    Wrapper servlet = Tomcat.addServlet(context, "application", new Application());
    servlet.setAsyncSupported(true);
    context.addServletMappingDecoded("/*", "application");
    Tomcat.addServlet(context, "page", new KeptPage());
    context.addServletMappingDecoded("/page", "page");
    ErrorPage page = new ErrorPage();
    page.setLocation("/page");
    context.addErrorPage(page);
    FilterDef definition = new FilterDef();
    definition.setFilterName("antipode");
    definition.setFilter(new AntipodeFilter());
    definition.setAsyncSupported("true");
    context.addFilterDef(definition);
    FilterDef hidden = new FilterDef();
    hidden.setFilterName("hidden");
    hidden.setFilter(new HiddenMethod());
    hidden.setAsyncSupported("true");
    context.addFilterDef(hidden);
    FilterMap outer = new FilterMap();
    outer.setFilterName("hidden");
    outer.addURLPatternDecoded("/*");
    context.addFilterMap(outer);
    FilterMap mapping = new FilterMap();
    mapping.setFilterName("antipode");
    mapping.addURLPatternDecoded("/*");
    mapping.setDispatcher("REQUEST");
    mapping.setDispatcher("ERROR");
    context.addFilterMap(mapping);
    tomcat.start();
    base = "http://localhost:" + tomcat.getConnector().getLocalPort() + "/?";
  }

  @AfterAll
  static void stop() throws Exception {
    tomcat.stop();
    tomcat.destroy();
  }

  private String lineageOf(String method, String parameters) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(URI.create(base + parameters))
        .timeout(Duration.ofMinutes(1)).method(method, BodyPublishers.noBody()).build();
    return client.send(request, BodyHandlers.discarding()).headers().firstValue("antipode-lineage").orElse(null);
  }

  /** PROP-16, PROP-34: it is no empty lineage that is complete. */
  @Test
  void whatAnAnswerMayNotCarryIsKnownToBeMissing() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(lineageOf("GET", "writes&Cache-Control=max-age=60")).isEqualTo(MARK.serialize());
      assertThat(scope.lineage()).isEqualTo(MARK);
    }
  }

  /** PROP-16: what added nothing lacks nothing; a lineage that the application copied is not lost unseen. */
  @Test
  void aMarkStandsForWhatIsTakenOut() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(lineageOf("GET", "Cache-Control=max-age=60")).isNull();
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(lineageOf("GET", "Cache-Control=max-age=60&antipode-lineage=1~a..e.1")).isEqualTo(MARK.serialize());
    }
  }

  /** PROP-39: an application that puts one {@code max-age} on all its answers loses nothing. */
  @ParameterizedTest
  @ValueSource(strings = {"POST", "PUT", "DELETE"})
  void theAnswerToAWriteBringsItsLineageBack(String method) throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      lineageOf(method, "writes&Cache-Control=max-age=60");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(WRITTEN));
    }
  }

  /** PROP-34, PROP-39. */
  @ParameterizedTest
  @CsvSource({
    "POST, writes&Cache-Control=max-age=60&Content-Location=/a, true",
    "GET, writes&modified, true",
    "POST, method=PUT&writes&Cache-Control=max-age=60&Content-Location=/a, true",
    "GET, writes&modified&status=500, false",
    "GET, writes&status=304, true",
    "HEAD, writes&Cache-Control=max-age=60, true"
  })
  void anAnswerThatACacheMayKeep(String method, String parameters, boolean isShared) throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      lineageOf(method, parameters);
      assertThat(scope.lineage()).isEqualTo(isShared ? MARK : Lineage.of(WRITTEN));
    }
  }

  /** PROP-34: what makes the page of an error comes behind our header. */
  @Test
  void thePageOfAnErrorThatACacheMayKeep() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(lineageOf("GET", "writes&error&status=404")).isEqualTo(Lineage.of(WRITTEN).serialize());
    }
    try (LineageScope scope = Antipode.scope()) {
      assertThat(lineageOf("GET", "writes&error&kept&status=404")).isEqualTo(MARK.serialize());
      assertThat(scope.lineage()).isEqualTo(MARK);
    }
  }

  /** PROP-34: also one that is larger than the container's buffer, and one behind a writer that serves no longer. */
  @ParameterizedTest
  @ValueSource(strings = {"large", "prints", "large&prints"})
  void thePageOfAnErrorLeavesNoSoonerThanThat(String parameters) throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(lineageOf("GET", "writes&error&kept&status=404&" + parameters)).isEqualTo(MARK.serialize());
      assertThat(scope.lineage()).isEqualTo(MARK);
      HttpRequest request = HttpRequest.newBuilder(URI.create(base + "error&status=404&" + parameters))
          .timeout(Duration.ofMinutes(1)).build();
      assertThat(client.send(request, BodyHandlers.ofString()).body()).matches("(?:sorry)+");
    }
  }

  /** PROP-13, PROP-31: and that it has added nothing; by a status or by {@code sendError}. */
  @ParameterizedTest
  @CsvSource({"502,", "503,", "504, error", "503, error", "520,", "530,", "304,"})
  void aServiceSaysThatItWasNoGateway(int status, String error) throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(lineageOf("GET", "status=" + status + (error == null ? "" : "&error"))).isEqualTo("1");
      assertThat(scope.lineage().isComplete()).isTrue();
      assertThat(lineageOf("GET", "status=500")).isNull();
    }
  }

  /** PROP-13: whose time-out answers, does not know what its work still adds. */
  @Test
  void aTimeOutDoesNotSayThatNothingWasAdded() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(lineageOf("GET", "late")).isNull();
      assertThat(scope.lineage()).isEqualTo(MARK);
    }
  }

  /** PROP-13, TRUST-3, PROP-26. */
  @Test
  void nothingIsSaidToStrangersOrWithModeOff() throws Exception {
    HttpRequest request = HttpRequest.newBuilder(URI.create(base + "status=503"))
        .header("X-Forwarded-For", "203.0.113.9").timeout(Duration.ofMinutes(1)).build();
    assertThat(client.send(request, BodyHandlers.discarding()).headers().map()).doesNotContainKey("antipode-lineage");
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    assertThat(lineageOf("GET", "status=503")).isNull();
  }

  /** PROP-13, PROP-31: Spring's clients on the JDK's and on Apache's tell a gateway's answer from the service's own. */
  @ParameterizedTest
  @CsvSource({"503, false", "504, true", "524, true", "530, true"})
  void springsClientsKnowAGateway(int status, boolean isApaches) throws Exception {
    ClientHttpRequestFactory plain = isApaches
        ? new HttpComponentsClientHttpRequestFactory(
            ApacheAttempts.see(HttpClients.custom()).disableRedirectHandling().disableAutomaticRetries().build())
        : new JdkClientHttpRequestFactory(
            HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NEVER).build());
    RestTemplate template = new RestTemplate(new JudgedRedirects(plain));
    template.getInterceptors().add(new AntipodeClientInterceptor());
    HttpServer gateway = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    gateway.createContext("/", exchange -> {
      exchange.sendResponseHeaders(status, -1);
      exchange.close();
    });
    gateway.start();
    try (LineageScope scope = Antipode.scope()) {
      call(template, base + "status=" + status);
      assertThat(scope.lineage().isComplete()).as("the service's own").isTrue();
      call(template, "http://localhost:" + gateway.getAddress().getPort() + "/");
      assertThat(scope.lineage().incomplete()).as("a gateway's").containsExactly("");
    } finally {
      gateway.stop(0);
    }
  }

  private static void call(RestTemplate template, String url) {
    try {
      template.execute(URI.create(url), HttpMethod.GET, null, response -> null);
    } catch (RestClientResponseException expected) {
      assertThat(expected.getStatusCode().value()).isGreaterThanOrEqualTo(500);
    }
  }
}
