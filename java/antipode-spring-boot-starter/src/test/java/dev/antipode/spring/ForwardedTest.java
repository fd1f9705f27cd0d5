package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.embedded.jetty.JettyServletWebServerFactory;
import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.boot.web.embedded.undertow.UndertowServletWebServerFactory;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.boot.web.servlet.server.ConfigurableServletWebServerFactory;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Headers of proxies, with every way in which Spring Boot has a container or a filter read them (TRUST-33). */
@ExtendWith(AntipodeIsolated.class)
class ForwardedTest {
  private static final String FORGED = "1~blog-posts..e.99";
  private static final List<String> OUTSIDERS = List.of(
      "X-Forwarded-For: 203.0.113.9",
      "X-Forwarded-For: 10.0.0.1, 203.0.113.9",
      "Forwarded: for=10.0.0.1, for=203.0.113.9");

  /** Says what it took. */
  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration(exclude = DataSourceAutoConfiguration.class)
  @RestController
  static class Service {
    @Bean
    static ConfigurableServletWebServerFactory container() {
      return switch (CONTAINER.get()) {
        case "jetty" -> new JettyServletWebServerFactory();
        case "undertow" -> new UndertowServletWebServerFactory();
        default -> new TomcatServletWebServerFactory();
      };
    }

    @GetMapping("/")
    String go() {
      String came = Antipode.serialize();
      Antipode.append(WriteId.position("users", "e", 1));
      return came;
    }
  }

  private static final ThreadLocal<String> CONTAINER = new ThreadLocal<>();
  private static final String NOTHING = "1";

  private final HttpClient client = HttpClient.newHttpClient();

  private static ConfigurableApplicationContext start(String container, String strategy, String more) {
    CONTAINER.set(container);
    return new SpringApplicationBuilder(Service.class)
        .bannerMode(Banner.Mode.OFF)
        .properties("server.port=0", "server.address=127.0.0.1", "logging.level.org=OFF", more,
            "server.forward-headers-strategy=" + strategy)
        .run();
  }

  /** What the application took, and what its response told. */
  private String call(ConfigurableApplicationContext service, String header) throws Exception {
    int port = ((ServletWebServerApplicationContext) service).getWebServer().getPort();
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/"))
        .timeout(Duration.ofSeconds(60)).header("antipode-lineage", FORGED);
    if (!header.isEmpty()) {
      request.header(header.substring(0, header.indexOf(':')), header.substring(header.indexOf(' ') + 1));
    }
    HttpResponse<String> response = client.send(request.build(), BodyHandlers.ofString());
    assertThat(response.statusCode()).isEqualTo(200);
    return response.body() + " " + response.headers().firstValue("antipode-lineage").orElse("silent");
  }

  /** TRUST-10, TRUST-33: an outsider's word never is the peer's address; {@code inside} is believed where it can be seen. */
  @ParameterizedTest
  @CsvSource({
      "tomcat, none, true", "tomcat, native, true", "tomcat, framework, true",
      "jetty, none, true", "jetty, native, false", "jetty, framework, true",
      "undertow, none, true", "undertow, native, false", "undertow, framework, true"})
  void anOutsiderForgesNothing(String container, String strategy, boolean inside) throws Exception {
    try (ConfigurableApplicationContext service = start(container, strategy, "server.tomcat.remoteip.internal-proxies=.*")) {
      for (String header : OUTSIDERS) {
        assertThat(call(service, header)).as(header).isEqualTo(NOTHING + " silent");
      }
      String taken = FORGED + " 1~users..e.1";
      assertThat(call(service, "")).isEqualTo(taken);
      assertThat(call(service, "X-Forwarded-For: 10.0.0.9")).isEqualTo(inside ? taken : NOTHING + " silent");
    }
  }

  /** TRUST-13: the address that the server resolved is judged also where the headers are not. */
  @ParameterizedTest
  @CsvSource({"tomcat, native", "jetty, native", "undertow, native"})
  void aResolvedAddressIsJudgedAlways(String container, String strategy) throws Exception {
    try (ConfigurableApplicationContext service = start(container, strategy, "antipode.forwarded=ignore")) {
      assertThat(call(service, OUTSIDERS.get(0))).isEqualTo(NOTHING + " silent");
      assertThat(call(service, "")).startsWith(FORGED);
    }
  }
}
