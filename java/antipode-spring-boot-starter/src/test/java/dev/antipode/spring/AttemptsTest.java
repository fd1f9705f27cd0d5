package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.http.client.HttpClientAutoConfiguration;
import org.springframework.boot.autoconfigure.web.client.RestClientAutoConfiguration;
import org.springframework.boot.autoconfigure.web.client.RestTemplateAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.web.client.RestTemplateBuilder;
import org.springframework.web.client.RestClient;

/** Apache's client, which Spring Boot chooses where it is there, repeats calls by itself (PROP-30). */
@ExtendWith(AntipodeIsolated.class)
class AttemptsTest {
  private static final WriteId FIRST = WriteId.position("blog-posts", "e", 7);
  private static final WriteId SECOND = WriteId.position("user-acl", "e", 3);

  private final AtomicInteger attempts = new AtomicInteger();
  private HttpServer server;

  @BeforeEach
  void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", this::handle);
    server.start();
  }

  @AfterEach
  void stop() {
    server.stop(0);
  }

  /** Writes; the first attempt hears that the server is busy, by itself or by a gateway's word, or nothing. */
  private void handle(HttpExchange exchange) throws IOException {
    boolean isFirst = attempts.incrementAndGet() == 1;
    String path = exchange.getRequestURI().getPath();
    if (isFirst && path.equals("/broken")) {
      exchange.close();
      return;
    }
    if (!isFirst || !path.equals("/gateway")) {
      exchange.getResponseHeaders().set("antipode-lineage", Lineage.of(isFirst ? FIRST : SECOND).serialize());
    }
    exchange.getResponseHeaders().set("Retry-After", "0");
    exchange.sendResponseHeaders(isFirst ? 503 : 200, -1);
    exchange.close();
  }

  private String lineageOf(String path, boolean byTemplate) {
    attempts.set(0);
    URI uri = URI.create("http://localhost:" + server.getAddress().getPort() + path);
    String[] seen = {""};
    new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(
        AntipodeAutoConfiguration.class,
        HttpClientAutoConfiguration.class,
        RestClientAutoConfiguration.class,
        RestTemplateAutoConfiguration.class)).run(context -> {
          assertThat(context).hasNotFailed();
          try (LineageScope scope = Antipode.scope()) {
            if (byTemplate) {
              context.getBean(RestTemplateBuilder.class).build().getForEntity(uri, Void.class);
            } else {
              context.getBean(RestClient.Builder.class).build().get().uri(uri).retrieve().toBodilessEntity();
            }
            seen[0] = scope.lineage().serialize();
          }
        });
    assertThat(attempts).hasValue(2);
    return seen[0];
  }

  @ParameterizedTest
  @CsvSource({"false", "true"})
  void eachAttemptGivesBackItsLineage_PROP_30(boolean byTemplate) {
    assertThat(lineageOf("/busy", byTemplate)).isEqualTo(Lineage.of(FIRST, SECOND).serialize());
  }

  @ParameterizedTest
  @CsvSource({"/broken, false", "/broken, true", "/gateway, false", "/gateway, true"})
  void anAttemptWithoutAnAnswerLeavesTheCallerIncomplete_PROP_30_PROP_31(String path, boolean byTemplate) {
    assertThat(lineageOf(path, byTemplate)).isEqualTo(Lineage.of(SECOND).markedIncomplete().serialize());
  }
}
