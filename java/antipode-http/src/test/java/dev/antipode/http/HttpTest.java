package dev.antipode.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Gap;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Settings;
import dev.antipode.Trust;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import jakarta.servlet.AsyncContext;
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
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.RemoteIpValve;
import org.apache.tomcat.util.descriptor.web.ErrorPage;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;

/** Lineages through real sockets: a filter in Tomcat, the JDK's client and Spring's (PROP-13, PROP-14, PROP-22). */
@ExtendWith(AntipodeIsolated.class)
class HttpTest {
  private static final WriteId BEFORE = WriteId.position("blog-posts", "8371ab90c2d4e6f1", 1042);
  private static final WriteId AFTER = WriteId.position("user-acl", "8371ab90c2d4e6f1", 57);
  private static final WriteId LATE = WriteId.position("users", "e", 1);
  private static final String TEXT = Lineage.of(BEFORE).serialize();
  private static final Logger CATALINA = Logger.getLogger("org.apache");
  private static final AtomicReference<LineageScope> SEEN = new AtomicReference<>();
  private static final AtomicReference<Lineage> CAME = new AtomicReference<>();
  private static final AtomicReference<String> NAMES = new AtomicReference<>();

  private static Tomcat tomcat;
  private static String base;

  private final HttpClient client = AntipodeHttp.wrap(HttpClient.newHttpClient());

  /** What the application does is in the path. */
  private static final class Application extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
      LineageScope scope = LineageScope.current();
      SEEN.set(scope);
      CAME.set(scope.lineage());
      NAMES.set(String.join(" ", Collections.list(request.getHeaderNames())).toLowerCase());
      switch (request.getPathInfo()) {
        case "/reads" -> response.getWriter().print("nothing");
        case "/writes" -> {
          response.getWriter().print("small");
          Antipode.append(AFTER);
        }
        case "/public" -> {
          response.setHeader("Cache-Control", "public, max-age=60");
          response.setHeader("antipode-lineage", TEXT);
          Antipode.append(AFTER);
        }
        case "/flushes" -> {
          Antipode.append(AFTER);
          response.getOutputStream().write('x');
          response.getOutputStream().flush();
          Antipode.append(LATE);
        }
        case "/headerAlone" -> {
          Antipode.append(AFTER);
          response.flushBuffer();
          Antipode.append(LATE);
          response.getOutputStream().write('x');
        }
        case "/emptyAlone" -> {
          response.setContentLength(0);
          response.flushBuffer();
        }
        case "/large" -> {
          Antipode.append(AFTER);
          response.getOutputStream().write(new byte[100_000]);
        }
        case "/sized" -> {
          response.setContentLength(5);
          response.getOutputStream().print("si");
          Antipode.append(AFTER);
          response.getOutputStream().print("zed");
        }
        case "/sizedByHeader" -> {
          Antipode.append(AFTER);
          response.setHeader("content-length", "5");
          response.getWriter().print("sized");
        }
        case "/sizedLate" -> {
          response.getOutputStream().print("sized");
          Antipode.append(AFTER);
          response.setContentLengthLong(5);
        }
        case "/fails" -> {
          Antipode.append(AFTER);
          response.sendError(503);
        }
        case "/throws" -> {
          Antipode.append(AFTER);
          throw new IllegalStateException("broken");
        }
        case "/async" -> {
          AsyncContext async = request.startAsync();
          async.start(() -> {
            Antipode.append(AFTER);
            async.complete();
          });
        }
        default -> response.setStatus(404);
      }
    }
  }

  /** As frameworks have one: answers for the application that threw. */
  private static final class ErrorPages extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
      response.getWriter().print("sorry");
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
    context.addServletMappingDecoded("/inside/*", "application");
    context.addServletMappingDecoded("/edge/*", "application");
    context.addServletMappingDecoded("/proxied/*", "application");
    Tomcat.addServlet(context, "page", new ErrorPages());
    context.addServletMappingDecoded("/inside/error", "page");
    ErrorPage page = new ErrorPage();
    page.setLocation("/inside/error");
    context.addErrorPage(page);
    RemoteIpValve proxies = new RemoteIpValve();
    proxies.setRemoteIpHeader("X-Real-Client");
    Context valved = tomcat.addContext("/valved", folder.toString());
    valved.getPipeline().addValve(proxies);
    Tomcat.addServlet(valved, "application", new Application());
    valved.addServletMappingDecoded("/*", "application");
    filter(valved, "antipode", new AntipodeFilter(), "/*");
    filter(context, "proxies", HttpTest::showAnother, "/proxied/*");
    filter(context, "proxied", new AntipodeFilter(), "/proxied/*");
    filter(context, "inside", new AntipodeFilter(), "/inside/*");
    filter(context, "nested", new AntipodeFilter(), "/inside/*");
    filter(context, "edge", new AntipodeFilter(true), "/edge/*");
    tomcat.start();
    base = "http://localhost:" + tomcat.getConnector().getLocalPort();
  }

  /** As Spring's ForwardedHeaderFilter: takes the first address of a header for the peer's, and hides the header. */
  private static void showAnother(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    String forwarded = ((HttpServletRequest) request).getHeader("X-Forwarded-For");
    String invented = ((HttpServletRequest) request).getHeader("Invented");
    chain.doFilter(
        new HttpServletRequestWrapper((HttpServletRequest) request) {
          @Override
          public String getRemoteAddr() {
            return forwarded == null ? invented : forwarded.split(",")[0];
          }

          @Override
          public Enumeration<String> getHeaders(String name) {
            return name.equalsIgnoreCase("X-Forwarded-For") ? Collections.emptyEnumeration() : super.getHeaders(name);
          }
        },
        response);
  }

  private static void filter(Context context, String name, Filter filter, String pattern) {
    FilterDef definition = new FilterDef();
    definition.setFilterName(name);
    definition.setFilter(filter);
    definition.setAsyncSupported("true");
    context.addFilterDef(definition);
    FilterMap mapping = new FilterMap();
    mapping.setFilterName(name);
    mapping.addURLPatternDecoded(pattern);
    mapping.setDispatcher("REQUEST");
    mapping.setDispatcher("ASYNC");
    mapping.setDispatcher("ERROR");
    context.addFilterMap(mapping);
  }

  @AfterAll
  static void stop() throws Exception {
    tomcat.stop();
    tomcat.destroy();
  }

  @BeforeEach
  void forget() {
    SEEN.set(null);
    CAME.set(null);
  }

  private static HttpRequest.Builder to(String path) {
    return HttpRequest.newBuilder(URI.create(base + path)).timeout(Duration.ofSeconds(30));
  }

  private HttpResponse<String> call(String path) throws Exception {
    return client.send(to(path).build(), BodyHandlers.ofString());
  }

  /** PROP-13, PROP-14, PROP-22, SCOPE-3. */
  @Test
  void thereAndBack() throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      HttpResponse<String> response = call("/inside/writes");
      assertThat(response.body()).isEqualTo("small");
      assertThat(CAME.get()).isEqualTo(Lineage.of(BEFORE));
      assertThat(SEEN.get().isClosed()).isTrue();
      assertThat(response.headers().allValues("antipode-lineage")).containsExactly(Lineage.of(AFTER).serialize());
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
      assertThat(call("/inside/reads").headers().map()).doesNotContainKey("antipode-lineage");
    }
    assertThat(call("/inside/reads").statusCode()).isEqualTo(200);
    assertThat(CAME.get()).isEqualTo(Lineage.EMPTY.markedIncomplete()); // outside any scope (SCOPE-31)
  }

  /** TRUST-5: nothing behind the filter sees it, and the application's own baggage is there. */
  @Test
  void theApplicationSeesNoLineageInItsHeaders() throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      call("/inside/reads");
      assertThat(NAMES.get()).contains("host").doesNotContain("antipode").doesNotContain("baggage");
      client.send(to("/inside/reads").header("baggage", "user=7").build(), BodyHandlers.discarding());
      assertThat(NAMES.get()).contains("baggage").doesNotContain("antipode");
    }
  }

  /** PROP-14, SCOPE-12: into the caller's scope, before what depends on the future runs. */
  @Test
  void asynchronously() throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      Lineage seen = client.sendAsync(to("/inside/writes").build(), BodyHandlers.ofString())
          .thenApply(Antipode.carry((HttpResponse<String> response) -> LineageScope.current().lineage()))
          .get(30, TimeUnit.SECONDS);
      assertThat(seen).isEqualTo(Lineage.of(BEFORE, AFTER));
      assertThat(scope.lineage()).isEqualTo(seen);
    }
  }

  /**
   * PROP-13: with what makes the container send the header: a flush, a large body, the last byte of a known length, an error,
   * the end of an async request.
   */
  @Test
  void theHeaderLeavesAsLateAsItMay() throws Exception {
    for (String path : List.of("flushes", "large", "sized", "sizedByHeader", "sizedLate", "fails", "async")) {
      try (LineageScope scope = Antipode.scope()) {
        call("/inside/" + path);
        assertThat(scope.lineage()).as(path).isEqualTo(Lineage.of(AFTER));
      }
      assertThat(SEEN.get().isClosed()).as(path).isTrue();
    }
  }

  /** PROP-16: what is written between such a header and the body is missing in it. */
  @Test
  void aHeaderThatLeavesAloneSaysThatItIsIncomplete() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      call("/inside/emptyAlone");
      assertThat(scope.lineage()).isEqualTo(Lineage.EMPTY);
      call("/inside/headerAlone");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER).markedIncomplete());
    }
  }

  /** PROP-16. */
  @Test
  void aPublicResponseCarriesAMarkAlone() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      assertThat(call("/inside/public").headers().allValues("antipode-lineage")).containsExactly("1~_.i");
      assertThat(scope.lineage()).isEqualTo(Lineage.EMPTY.markedIncomplete());
    }
  }

  /** TRUST-4: an edge takes nothing and answers nothing. */
  @Test
  void anEdge() throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      assertThat(call("/edge/writes").headers().map()).doesNotContainKey("antipode-lineage");
      assertThat(CAME.get().hasContent()).isFalse();
    }
  }

  /** TRUST-10: a request that was outside. */
  @Test
  void aForwardedRequestFromOutside() throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      client.send(to("/inside/writes").header("X-Forwarded-For", "203.0.113.9").build(), BodyHandlers.discarding());
      assertThat(CAME.get().hasContent()).isFalse();
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
    }
  }

  /** TRUST-10, TRUST-33: whom a proxy's header named, which Tomcat has taken away, nobody can say. */
  @Test
  void aRequestOfWhichTomcatTakesTheHeaderAway() throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE)); CapturedLogs logs = new CapturedLogs()) {
      for (String client : List.of("203.0.113.9", "10.0.0.9", "10.0.0.9, 203.0.113.9", "127.0.0.1")) {
        this.client.send(to("/valved/writes").header("X-Real-Client", client).build(), BodyHandlers.discarding());
        assertThat(CAME.get().hasContent()).as(client).isFalse();
        assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
      }
      assertThat(logs.text()).contains("cannot be seen").contains("RemoteIpFilter");
    }
  }

  /** TRUST-33: a filter before ours hides headers and shows another peer: what the container received is judged. */
  @Test
  void aFilterOutsideOfOursIsSeenThrough() throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      for (String forged : List.of("10.0.0.1, 203.0.113.9", "203.0.113.9, 10.0.0.1")) {
        client.send(to("/proxied/writes").header("X-Forwarded-For", forged).build(), BodyHandlers.discarding());
        assertThat(CAME.get().hasContent()).as(forged).isFalse();
      }
      client.send(to("/proxied/writes").header("Invented", "10.0.0.1").build(), BodyHandlers.discarding());
      assertThat(CAME.get().hasContent()).as("an address that nothing explains").isFalse();
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
      client.send(to("/proxied/writes").header("X-Forwarded-For", "10.0.0.1").build(), BodyHandlers.discarding());
      assertThat(CAME.get()).isEqualTo(Lineage.of(BEFORE));
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
    }
  }

  /** PROP-13: the page of an error that the application did not answer itself. */
  @Test
  void anExceptionWithAnErrorPage() throws Exception {
    try (LineageScope scope = Antipode.scope()) {
      HttpResponse<String> response = call("/inside/throws");
      assertThat(response.statusCode()).isEqualTo(500);
      assertThat(response.body()).isEqualTo("sorry");
      assertThat(response.headers().allValues("antipode-lineage")).containsExactly(Lineage.of(AFTER).serialize());
      assertThat(scope.lineage()).isEqualTo(Lineage.of(AFTER));
    }
  }

  /** PROP-23. */
  @Test
  void noHeaderIsAnError() throws Exception {
    HttpClient plain = HttpClient.newHttpClient();
    for (String value : List.of("hello", "antipode=%zz", "antipode=1~" + "x".repeat(3000), ",;=")) {
      HttpRequest request = to("/inside/reads").header("baggage", value).header("antipode-lineage", value).build();
      assertThat(plain.send(request, BodyHandlers.ofString()).statusCode()).isEqualTo(200);
      assertThat(CAME.get().isComplete()).isFalse();
    }
  }

  /** PROP-27: a broken connection is a loss; a call that never left is none. */
  @Test
  void anUnansweredCall() throws Exception {
    try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
        LineageScope scope = Antipode.scope()) {
      Thread closing = new Thread(() -> {
        while (!server.isClosed()) {
          try (Socket socket = server.accept()) {
            assertThat(socket.getInputStream().read()).isNotNegative();
          } catch (IOException e) {
            return;
          }
        }
      });
      closing.start();
      HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + server.getLocalPort()))
          .timeout(Duration.ofSeconds(30)).POST(HttpRequest.BodyPublishers.ofString("x")).build();
      assertThatThrownBy(() -> client.send(request, BodyHandlers.discarding())).isInstanceOf(IOException.class);
      assertThat(scope.lineage().incomplete()).containsExactly("");
      assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("unanswered");
      server.close();
      closing.join(30_000);
      try (LineageScope other = Antipode.scope()) {
        assertThatThrownBy(() -> client.send(request, BodyHandlers.discarding())).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> client.sendAsync(request, BodyHandlers.discarding()).get(30, TimeUnit.SECONDS))
            .hasCauseInstanceOf(IOException.class);
        assertThat(other.lineage().isComplete()).isTrue();
      }
    }
  }

  /** PROP-31: a gateway gives these by itself when the callee, which may have written, is late. */
  @ParameterizedTest
  @CsvSource({"502, false", "503, false", "504, false", "521, false", "500, true", "529, true"})
  void anAnswerOfAGatewayIsNone(int status, boolean isComplete) throws Exception {
    HttpServer gateway = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    gateway.createContext("/", exchange -> {
      exchange.sendResponseHeaders(status, -1);
      exchange.close();
    });
    gateway.start();
    HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + gateway.getAddress().getPort()))
        .timeout(Duration.ofSeconds(30)).build();
    try (LineageScope scope = Antipode.scope()) {
      assertThat(client.send(request, BodyHandlers.discarding()).statusCode()).isEqualTo(status);
      assertThat(scope.lineage().isComplete()).isEqualTo(isComplete);
    } finally {
      gateway.stop(0);
    }
  }

  /** TRUST-26. */
  @Test
  void aClientThatFollowsRedirectsIsRefused() {
    HttpClient follows = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build();
    assertThatThrownBy(() -> AntipodeHttp.wrap(follows))
        .isInstanceOf(ConfigurationException.class).hasMessageContaining("Redirect.NEVER");
    assertThat(AntipodeHttp.wrap(client)).isSameAs(client);
    assertThat(client.version()).isEqualTo(HttpClient.newHttpClient().version());
  }

  /** Spring's clients, on the JDK's. */
  @Test
  void springsClients() {
    RestTemplate template = new RestTemplate(new JudgedRedirects(new JdkClientHttpRequestFactory()));
    template.getInterceptors().add(new AntipodeClientInterceptor());
    RestClient restClient = RestClient.builder()
        .requestFactory(JudgedRedirects.withoutFollowing(new JdkClientHttpRequestFactory()))
        .requestInterceptor(new AntipodeClientInterceptor())
        .build();
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      assertThat(template.getForObject(base + "/inside/writes", String.class)).isEqualTo("small");
      assertThat(CAME.get()).isEqualTo(Lineage.of(BEFORE));
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
    }
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      assertThat(restClient.get().uri(base + "/inside/writes").retrieve().body(String.class)).isEqualTo("small");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, AFTER));
      assertThatThrownBy(() -> template.getForObject("http://localhost:1/", String.class))
          .isInstanceOf(ResourceAccessException.class);
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  /** TRUST-15: a host that is not ours gets none. */
  @Test
  void aHostThatIsNotOurs() throws Exception {
    Antipode.configure(Settings.defaults().trust(Trust.NONE));
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      call("/inside/writes");
      assertThat(CAME.get().hasContent()).isFalse();
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
    }
  }
}
