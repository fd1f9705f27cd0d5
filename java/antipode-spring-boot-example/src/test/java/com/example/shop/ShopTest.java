package com.example.shop;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.LineageScope;
import dev.antipode.lab.Lab;
import dev.antipode.lab.Repository;
import dev.antipode.propagation.Messages;
import dev.antipode.testing.AntipodeIsolated;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** The application as Spring Boot makes it, on real servers: with JPA, its own HikariCP, and Actuator (SHIM-50, SCOPE-14). */
@ExtendWith(AntipodeIsolated.class)
class ShopTest {
  private static Lab lab;

  @BeforeAll
  static void start() throws Exception {
    lab = Lab.of("postgresql", "rabbitmq").replicas(1).set("rabbitmq.one_broker", "true").up();
    String url = "postgresql://postgres@127.0.0.1:" + lab.server("postgresql", "a").port() + "/app";
    String command = Repository.root().resolve(".venv/bin/antipode").toString();
    Process init = new ProcessBuilder(command, "init", "purchases", "--at", url, "--user", "app", "--run", "--yes")
        .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
    init.getOutputStream().close();
    assertThat(init.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(init.exitValue()).isZero();
    lab.verb("postgresql", "wait_caught_up", "b1");
  }

  @AfterAll
  static void stop() {
    lab.close();
  }

  private static String jdbc(String server) {
    return "jdbc:postgresql://127.0.0.1:" + lab.server("postgresql", server).port() + "/app";
  }

  private static ConfigurableApplicationContext run() {
    return SpringApplication.run(
        Shop.class,
        "--server.port=0",
        "--server.address=127.0.0.1",
        "--spring.datasource.url=" + jdbc("a"),
        "--spring.datasource.username=app",
        "--spring.rabbitmq.addresses=" + lab.server("rabbitmq", "a").url(),
        "--antipode.stores.purchases.replicas=" + jdbc("b1"));
  }

  private static String call(HttpRequest.Builder request) throws Exception {
    HttpResponse<String> response = HttpClient.newHttpClient().send(
        request.timeout(Duration.ofSeconds(60)).build(), HttpResponse.BodyHandlers.ofString());
    assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
    return response.body();
  }

  private static boolean isPackedAt(String server, String id) throws SQLException {
    try (Connection connection = DriverManager.getConnection(jdbc(server), "app", "");
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("SELECT packed FROM purchase WHERE id = '" + id + "'")) {
      return rows.next() && rows.getBoolean(1);
    }
  }

  @Test
  void whatAListenerWritesIsWaitedFor() throws Exception {
    try (ConfigurableApplicationContext context = run()) {
      String root = "http://127.0.0.1:" + context.getEnvironment().getProperty("local.server.port");
      assertThat(call(HttpRequest.newBuilder(URI.create(root + "/actuator/health")))).contains("UP");
      assertThat(call(HttpRequest.newBuilder(URI.create(root + "/actuator/metrics/hikaricp.connections")))).contains("VALUE");

      lab.lag("postgresql", "b1", Duration.ofSeconds(2));
      call(HttpRequest.newBuilder(URI.create(root + "/purchases/42")).POST(HttpRequest.BodyPublishers.noBody()));
      Message parcel = context.getBean(RabbitTemplate.class).receive("parcels", 60_000);
      assertThat(parcel).isNotNull();
      try (LineageScope scope = Messages.open(parcel.getMessageProperties().getHeaders(), Messages.Options.DEFAULTS)) {
        assertThat(isPackedAt("b1", "42")).as("the replica lags").isFalse();
        BarrierResult result = Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(30)));
        assertThat(result.satisfied() && result.complete()).as(result.explain()).isTrue();
        assertThat(isPackedAt("b1", "42")).isTrue();
      }
    }
  }
}
