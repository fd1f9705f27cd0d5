package dev.antipode.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Gap;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.shim.Logs;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hc.client5.http.impl.classic.HttpClientBuilder;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.HttpEntity;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;

/** Redirects of Spring's clients, on real sockets: each hop is judged anew, by its name (TRUST-26). */
@ExtendWith(AntipodeIsolated.class)
class RedirectsTest {
  private static final WriteId BEFORE = WriteId.position("users", "e", 1042);
  private static final WriteId FIRST = WriteId.position("blog-posts", "e", 7);
  private static final WriteId SECOND = WriteId.position("user-acl", "e", 3);
  private static final String FAR = "http://far.example.com"; // by a proxy, which is the same server

  /** A request as it came. */
  private record Came(String method, String at, Lineage lineage, String body, HttpHeaders headers) {}

  private final List<Came> came = Collections.synchronizedList(new ArrayList<>());
  private HttpServer server;
  private String near;
  private HttpClient client;

  @BeforeEach
  void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", this::handle);
    server.start();
    near = "http://localhost:" + server.getAddress().getPort();
    client = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NEVER).proxy(new ToTheServer()).build();
  }

  @AfterEach
  void stop() {
    server.stop(0);
  }

  /** What is far away is here all the same. */
  private final class ToTheServer extends ProxySelector {
    @Override
    public List<Proxy> select(URI uri) {
      return List.of(uri.getHost().startsWith("far.") ? new Proxy(Proxy.Type.HTTP, server.getAddress()) : Proxy.NO_PROXY);
    }

    @Override
    public void connectFailed(URI uri, SocketAddress address, IOException error) {
      throw new AssertionError(error);
    }
  }

  /** {@code /go?<status>&<location>} redirects, and has written before; all else ends there. */
  private void handle(HttpExchange exchange) throws IOException {
    URI asked = exchange.getRequestURI();
    HttpHeaders headers = new HttpHeaders();
    headers.putAll(exchange.getRequestHeaders());
    String lineage = headers.getFirst("antipode-lineage");
    String host = headers.getFirst(HttpHeaders.HOST);
    came.add(new Came(
        exchange.getRequestMethod(),
        host.replaceFirst(":.*", "") + asked.getPath(),
        lineage == null ? Lineage.EMPTY : Lineage.deserialize(lineage),
        new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8),
        headers));
    boolean goes = asked.getPath().startsWith("/go");
    exchange.getResponseHeaders().set("antipode-lineage", Lineage.of(goes ? FIRST : SECOND).serialize());
    if (goes) {
      String[] words = asked.getQuery().split("&", 2);
      exchange.getResponseHeaders().set("Location", words[1]);
      exchange.sendResponseHeaders(Integer.parseInt(words[0]), -1);
    } else {
      byte[] body = "end".getBytes(StandardCharsets.UTF_8);
      boolean hasBody = !exchange.getRequestMethod().equals("HEAD");
      exchange.sendResponseHeaders(200, hasBody ? body.length : -1);
      if (hasBody) {
        exchange.getResponseBody().write(body);
      }
    }
    exchange.close();
  }

  private RestTemplate template() {
    RestTemplate template = new RestTemplate(new JudgedRedirects(new JdkClientHttpRequestFactory(client)));
    template.getInterceptors().add(new AntipodeClientInterceptor());
    return template;
  }

  private URI go(int status, String location) {
    return URI.create(near + "/go?" + status + "&" + location);
  }

  private int statusOf(URI uri) {
    return template().getForEntity(uri, Void.class).getStatusCode().value();
  }

  @Test
  void aHostThatIsOursGetsTheLineageAsItIsByThen_TRUST_26() {
    for (boolean isRestClient : List.of(false, true)) {
      came.clear();
      try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
        String end = isRestClient
            ? RestClient.create(template()).get().uri(go(302, near + "/end")).retrieve().body(String.class)
            : template().getForObject(go(302, near + "/end"), String.class);
        assertThat(end).isEqualTo("end");
        assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, FIRST, SECOND));
      }
      assertThat(came).extracting(Came::lineage).containsExactly(Lineage.of(BEFORE), Lineage.of(BEFORE, FIRST));
    }
  }

  @Test
  void aHostThatIsNotOursGetsNoneAndIsNotBelieved_TRUST_26() {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      assertThat(template().getForObject(go(302, FAR + "/end"), String.class)).isEqualTo("end");
      assertThat(scope.lineage()).as("of the near one alone").isEqualTo(Lineage.of(BEFORE, FIRST));
      assertThat(scope.lineage().isComplete()).isTrue();
    }
    assertThat(came).extracting(Came::at).containsExactly("localhost/go", "far.example.com/end");
    assertThat(came.get(1).lineage()).isEqualTo(Lineage.EMPTY);
    assertThat(came.get(1).headers().toString()).doesNotContain("antipode");
  }

  /** By one that is not ours, and back. */
  @Test
  void eachHopIsJudgedByItself_TRUST_26() {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      assertThat(template().getForObject(go(302, FAR + "/go?302%26" + near + "/end"), String.class)).isEqualTo("end");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, FIRST, SECOND));
    }
    assertThat(came).extracting(Came::lineage)
        .containsExactly(Lineage.of(BEFORE), Lineage.EMPTY, Lineage.of(BEFORE, FIRST));
  }

  @ParameterizedTest
  @CsvSource({
    "GET, 301, GET", "GET, 302, GET", "GET, 303, GET", "GET, 307, GET", "GET, 308, GET", "HEAD, 303, HEAD", "POST, 301, GET",
    "POST, 302, GET", "POST, 303, GET", "POST, 307, POST", "POST, 308, POST", "PUT, 302, PUT", "PUT, 303, GET", "PUT, 307, PUT"})
  void methodsAndBodies(String method, int status, String then) {
    boolean hasBody = !method.equals("GET") && !method.equals("HEAD");
    RestClient.RequestBodySpec request =
        RestClient.create(template()).method(HttpMethod.valueOf(method)).uri(go(status, "/end"));
    if (hasBody) {
      request.body("text");
    }
    assertThat(request.retrieve().toBodilessEntity().getStatusCode().value()).isEqualTo(200);
    assertThat(came).extracting(Came::method).containsExactly(method, then);
    boolean keeps = hasBody && method.equals(then);
    assertThat(came.get(1).body()).isEqualTo(keeps ? "text" : "");
    assertThat(came.get(1).headers().getContentType() != null).isEqualTo(keeps);
  }

  @ParameterizedTest
  @CsvSource({"/end, /end", "end, /end", "../end, /../end", "?200, /go", "//localhost:PORT/end, /end"})
  void relativeLocations(String location, String path) {
    String there = location.replace("PORT", String.valueOf(server.getAddress().getPort()));
    ResponseEntity<Void> response =
        RestClient.create(template()).get().uri(go(302, there.replace("?200", "?302%26/end"))).retrieve().toBodilessEntity();
    assertThat(response.getStatusCode().value()).isEqualTo(200);
    assertThat(came.get(1).at()).isEqualTo("localhost" + path);
  }

  @ParameterizedTest
  @CsvSource({"302, ftp://localhost/end", "302, http://%%/", "302, http:///end", "304, /end", "300, /end"})
  void whatCannotBeFollowedIsTheResponse(int status, String location) {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      URI from = go(status, location.replace("%%", "%25%25"));
      assertThat(statusOf(from)).isEqualTo(status);
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, FIRST));
    }
    assertThat(came).hasSize(1);
  }

  @Test
  void aLoopEnds() {
    server.createContext("/loop", exchange -> {
      came.add(new Came(exchange.getRequestMethod(), "", Lineage.EMPTY, "", new HttpHeaders()));
      exchange.getResponseHeaders().set("Location", "/loop");
      exchange.sendResponseHeaders(302, -1);
      exchange.close();
    });
    assertThat(statusOf(URI.create(near + "/loop"))).isEqualTo(302);
    assertThat(came).hasSize(21);
  }

  @Test
  void credentialsStayWithTheirOrigin() {
    RestClient clients = RestClient.create(template());
    for (String there : List.of(near + "/end", FAR + "/end")) {
      came.clear();
      clients.get().uri(go(302, there))
          .header(HttpHeaders.AUTHORIZATION, "Bearer x").header(HttpHeaders.COOKIE, "a=b").header("mine", "c")
          .retrieve().toBodilessEntity();
      HttpHeaders second = came.get(1).headers();
      assertThat(second.containsKey(HttpHeaders.AUTHORIZATION)).isEqualTo(there.startsWith(near));
      assertThat(second.containsKey(HttpHeaders.COOKIE)).isEqualTo(there.startsWith(near));
      assertThat(second.getFirst("mine")).isEqualTo("c");
    }
  }

  /** PROP-27: whether the host that gave no answer is ours, and not the one that led there. */
  @Test
  void aHopWithoutAnAnswer() {
    server.createContext("/cuts", HttpExchange::close);
    for (String there : List.of(near, FAR)) {
      try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
        assertThatThrownBy(() -> template().postForObject(go(307, there + "/cuts"), "x", String.class))
            .isInstanceOf(ResourceAccessException.class);
        assertThat(scope.gaps()).extracting(Gap::reason)
            .isEqualTo(there.equals(near) ? List.of("unanswered") : List.of());
      }
    }
  }

  /** Without the interceptor nothing is carried, and the redirects are followed all the same. */
  @Test
  void withoutTheInterceptor() {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      RestTemplate plain = new RestTemplate(new JudgedRedirects(new JdkClientHttpRequestFactory(client)));
      assertThat(plain.postForObject(go(307, near + "/end"), "text", String.class)).isEqualTo("end");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
    }
    assertThat(came).extracting(Came::lineage).containsExactly(Lineage.EMPTY, Lineage.EMPTY);
    assertThat(came.get(1).body()).isEqualTo("text");
  }

  /** TRUST-34: beneath the interceptor nothing of ours: nothing leaves, and nobody is believed. */
  @Test
  void aFactoryThatMayFollowCarriesNothing() {
    for (ClientHttpRequestFactory factory : List.of(
        new SimpleClientHttpRequestFactory(),
        new JdkClientHttpRequestFactory(HttpClient.newBuilder().followRedirects(HttpClient.Redirect.ALWAYS).build()))) {
      RestTemplate plain = new RestTemplate(factory);
      plain.getInterceptors().add(new AntipodeClientInterceptor());
      try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE)); CapturedLogs logs = new CapturedLogs()) {
        HttpHeaders older = new HttpHeaders();
        older.set("antipode-lineage", Lineage.of(BEFORE).serialize());
        older.set("baggage", "user=7,antipode=" + Lineage.of(BEFORE).serialize());
        URI there = go(302, near.replace("localhost", "127.0.0.1") + "/end");
        plain.exchange(there, HttpMethod.GET, new HttpEntity<>(older), String.class);
        assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
        assertThat(scope.gaps()).extracting(Gap::reason).containsExactly("untrusted");
        assertThat(logs.text()).contains("new JudgedRedirects(factory)");
      }
      assertThat(came).hasSize(2).extracting(Came::lineage).containsOnly(Lineage.EMPTY);
      assertThat(came).allSatisfy(each -> assertThat(each.headers().getFirst("baggage")).isEqualTo("user=7"));
      came.clear();
      Logs.reset();
      assertThatThrownBy(() -> new JudgedRedirects(factory))
          .isInstanceOf(ConfigurationException.class).hasMessageContaining("Redirect.NEVER");
    }
  }

  /** TRUST-35: a proxy outside reads what goes through it, and may answer itself; by TLS it cannot. */
  @Test
  void aProxyThatIsNotOurs() throws Exception {
    ProxySelector outside = ProxySelector.of(InetSocketAddress.createUnresolved("proxy.example.com", 1));
    assertThat(Proxies.judgedHost(URI.create("http://posts.internal/"), outside)).isEqualTo("proxy.example.com");
    assertThat(Proxies.judgedHost(URI.create("https://posts.internal/"), outside)).isEqualTo("posts.internal");
    assertThat(Proxies.judgedHost(URI.create("http://posts.internal/"), new ToTheServer())).isEqualTo("posts.internal");
    Antipode.configure(Settings.defaults().peers("far.example.com"));
    InetSocketAddress there = new InetSocketAddress(InetAddress.getByAddress("proxy.example.com", new byte[] {127, 0, 0, 1}),
        server.getAddress().getPort());
    HttpClient plain = HttpClient.newBuilder().proxy(ProxySelector.of(there)).build();
    RestTemplate spring = new RestTemplate(new JudgedRedirects(new JdkClientHttpRequestFactory(plain)));
    spring.getInterceptors().add(new AntipodeClientInterceptor());
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      spring.getForObject(FAR + "/end", String.class);
      AntipodeHttp.wrap(plain).send(
          HttpRequest.newBuilder(URI.create(FAR + "/end")).build(), HttpResponse.BodyHandlers.discarding());
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE));
      assertThat(came).hasSize(2).extracting(Came::lineage).containsOnly(Lineage.EMPTY);
      AntipodeHttp.wrap(client).send(
          HttpRequest.newBuilder(URI.create(FAR + "/end")).build(), HttpResponse.BodyHandlers.discarding());
      assertThat(came.get(2).lineage()).as("by a proxy of ours").isEqualTo(Lineage.of(BEFORE));
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, SECOND));
    }
  }

  /** TRUST-34: a factory that is known to follow none. */
  @Test
  void aRedirectThatNobodyFollows() {
    RestTemplate single = new RestTemplate(JudgedRedirects.withoutFollowing(new JdkClientHttpRequestFactory(client)));
    single.getInterceptors().addAll(List.of(new AntipodeClientInterceptor(), new AntipodeClientInterceptor()));
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE)); CapturedLogs logs = new CapturedLogs()) {
      assertThat(single.getForEntity(go(302, FAR + "/end"), Void.class).getStatusCode().value()).isEqualTo(302);
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, FIRST));
      assertThat(logs.text()).isEmpty();
    }
    assertThat(came).extracting(Came::lineage).containsExactly(Lineage.of(BEFORE));
  }

  /** PROP-30: what it does between the call and us is ours to see. */
  @Test
  void aClientThatRepeatsCallsUnseenIsRefused() {
    assertThatThrownBy(() -> new JudgedRedirects(apaches(HttpClients.custom())))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("ApacheAttempts.see(builder)");
    assertThat(new JudgedRedirects(apaches(HttpClients.custom().disableAutomaticRetries()))).isNotNull();
    assertThat(new JudgedRedirects(apaches(ApacheAttempts.see(HttpClients.custom())))).isNotNull();
  }

  private static ClientHttpRequestFactory apaches(HttpClientBuilder builder) {
    return new HttpComponentsClientHttpRequestFactory(builder.disableRedirectHandling().build());
  }
}
