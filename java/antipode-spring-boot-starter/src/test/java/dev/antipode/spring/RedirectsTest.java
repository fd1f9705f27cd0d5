package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.http.client.HttpClientAutoConfiguration;
import org.springframework.boot.autoconfigure.web.client.RestClientAutoConfiguration;
import org.springframework.boot.autoconfigure.web.client.RestTemplateAutoConfiguration;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.ClientHttpRequestFactorySettings.Redirects;
import org.springframework.boot.http.client.JdkClientHttpRequestFactoryBuilder;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.web.client.RestTemplateBuilder;
import org.springframework.context.ApplicationContext;
import org.springframework.http.ResponseEntity;
import org.springframework.web.client.RestClient;

/** Redirects of the clients that Spring Boot builds, on real sockets (TRUST-26). */
@ExtendWith(AntipodeIsolated.class)
class RedirectsTest {
  private static final WriteId BEFORE = WriteId.position("users", "e", 1042);
  private static final String FAR = "http://far.example.com"; // by a proxy, which is the same server

  private final ApplicationContextRunner runner = new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(
      AntipodeAutoConfiguration.class,
      HttpClientAutoConfiguration.class,
      RestClientAutoConfiguration.class,
      RestTemplateAutoConfiguration.class));
  private final ProxySelector before = ProxySelector.getDefault();
  private final List<String> came = Collections.synchronizedList(new ArrayList<>());
  private HttpServer server;
  private String near;
  private CapturedLogs logs;

  @BeforeEach
  void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", this::handle);
    server.start();
    near = "http://localhost:" + server.getAddress().getPort();
    ProxySelector.setDefault(new ToTheServer());
    logs = new CapturedLogs();
  }

  @AfterEach
  void stop() {
    logs.close();
    ProxySelector.setDefault(before);
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

  /** {@code /go?<location>} redirects. */
  private void handle(HttpExchange exchange) throws IOException {
    String location = exchange.getRequestURI().getQuery();
    came.add(exchange.getRequestHeaders().getFirst("Host").replaceFirst(":.*", "") + " "
        + exchange.getRequestHeaders().getFirst("antipode-lineage"));
    if (location != null) {
      exchange.getResponseHeaders().set("Location", location);
    }
    exchange.sendResponseHeaders(location == null ? 200 : 302, -1);
    exchange.close();
  }

  private URI go(String host) {
    return URI.create(near + "/go?" + host + "/end");
  }

  /** The status of a request in a scope, by each of Spring Boot's two kinds of client. */
  private List<Integer> statuses(ApplicationContext context, String host) {
    came.clear();
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      ResponseEntity<Void> one =
          context.getBean(RestClient.Builder.class).build().get().uri(go(host)).retrieve().toBodilessEntity();
      ResponseEntity<Void> other = context.getBean(RestTemplateBuilder.class).build().getForEntity(go(host), Void.class);
      return List.of(one.getStatusCode().value(), other.getStatusCode().value());
    }
  }

  private static String with(String host) {
    return host + " " + Lineage.of(BEFORE).serialize();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "spring.http.client.redirects=follow", "spring.http.client.factory=jdk"})
  void eachHopIsJudgedAnew_TRUST_26(String property) {
    runner.withPropertyValues(property).run(context -> {
      assertThat(context).hasNotFailed();
      assertThat(statuses(context, near)).containsOnly(200);
      assertThat(came).hasSize(4).containsOnly(with("localhost"));
      assertThat(statuses(context, FAR)).containsOnly(200);
      assertThat(came).containsExactly(
          with("localhost"), "far.example.com null", with("localhost"), "far.example.com null");
    });
    assertThat(logs.text()).doesNotContain("redirects");
  }

  @Test
  void whoFollowsNoneStaysSo() {
    runner.withPropertyValues("spring.http.client.redirects=dont-follow").run(context ->
        assertThat(statuses(context, near)).containsOnly(302));
    assertThat(came).hasSize(2).containsOnly(with("localhost"));
    runner.run(context -> assertThat(context.getBean(RestTemplateBuilder.class)
        .redirects(Redirects.DONT_FOLLOW).build().getForEntity(go(near), Void.class).getStatusCode().value()).isEqualTo(302));
  }

  @Test
  void customizersAreOfTheFactoryItself() {
    runner.withPropertyValues("spring.http.client.factory=jdk").run(context -> {
      List<String> customized = new ArrayList<>();
      ClientHttpRequestFactoryBuilder<?> builder = context.getBean(ClientHttpRequestFactoryBuilder.class);
      builder.withCustomizer(made -> customized.add(made.getClass().getSimpleName())).build();
      assertThat(customized).containsExactly("JdkClientHttpRequestFactory");
    });
  }

  @Test
  void whatFollowsByItselfIsSaid() {
    runner.withPropertyValues("spring.http.client.factory=simple").run(context ->
        assertThat(statuses(context, near)).containsOnly(200));
    assertThat(came).as("TRUST-34").hasSize(4).containsOnly("localhost null");
    assertThat(logs.text()).containsPattern("SimpleClientHttps?RequestFactory may follow redirects");
  }

  /** Injected by its class, too. */
  @Test
  void aBuilderOfTheApplicationsOwnStaysItsOwn() {
    runner.withBean("mine", JdkClientHttpRequestFactoryBuilder.class, ClientHttpRequestFactoryBuilder::jdk).run(context -> {
      assertThat(context.getBean(JdkClientHttpRequestFactoryBuilder.class)).isNotNull();
      assertThat(statuses(context, near)).containsOnly(200);
    });
    assertThat(logs.text()).contains("the application's own JdkClientHttpRequestFactoryBuilder may follow redirects");
  }
}
