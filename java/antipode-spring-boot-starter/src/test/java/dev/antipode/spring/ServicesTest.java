package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.http.AntipodeHttp;
import dev.antipode.testing.Isolated;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.client.RestTemplateBuilder;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;

/** Two services over real HTTP, without a line for Antipode: request and response lineages, and all that runs elsewhere. */
class ServicesTest {
  private static final WriteId BEFORE = WriteId.position("users", "e", 1042);
  private static final WriteId STORED = WriteId.position("blog-posts", "e", 7);
  private static final WriteId QUEUED = WriteId.position("notifications", "e", 3);

  private static Isolated isolated;
  private static ConfigurableApplicationContext storage;
  private static ConfigurableApplicationContext gateway;

  private final HttpClient client = AntipodeHttp.wrap(HttpClient.newHttpClient());

  /** Keeps the posts. */
  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration(exclude = DataSourceAutoConfiguration.class)
  @RestController
  static class Storage {
    /** What came in; the write goes back with the response. */
    @GetMapping("/store")
    String store() {
      String came = Antipode.serialize();
      Antipode.append(STORED);
      return came;
    }
  }

  /** Takes requests, and calls the other one in all the ways that there are. */
  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration(exclude = DataSourceAutoConfiguration.class)
  @EnableAsync
  @RestController
  static class Gateway {
    private final RestClient restClient;
    private final RestTemplate restTemplate;
    private final Tasks tasks;

    Gateway(RestClient.Builder clients, RestTemplateBuilder templates, Tasks tasks) {
      this.restClient = clients.build();
      this.restTemplate = templates.build();
      this.tasks = tasks;
    }

    @Bean
    static Tasks tasks() {
      return new Tasks();
    }

    @GetMapping("/client")
    String client(@RequestParam("at") String at) {
      Antipode.append(QUEUED);
      return restClient.get().uri(at).retrieve().body(String.class);
    }

    @GetMapping("/template")
    String template(@RequestParam("at") String at) {
      Antipode.append(QUEUED);
      return restTemplate.getForObject(at, String.class);
    }

    @GetMapping("/async")
    String async() throws Exception {
      return tasks.work().get(30, TimeUnit.SECONDS);
    }

    @GetMapping("/callable")
    Callable<String> callable() {
      return () -> {
        Antipode.append(QUEUED);
        return "done in " + kindOfThread();
      };
    }

    @GetMapping("/deferred")
    DeferredResult<String> deferred() {
      DeferredResult<String> result = new DeferredResult<>(30_000L);
      tasks.work().thenAccept(result::setResult);
      return result;
    }

    @GetMapping("/late")
    DeferredResult<String> late() {
      DeferredResult<String> result = new DeferredResult<>(50L);
      result.onTimeout(() -> {
        Antipode.append(QUEUED);
        result.setResult("timed out");
      });
      return result;
    }

    @GetMapping("/late-task")
    WebAsyncTask<String> lateTask() {
      CountDownLatch over = new CountDownLatch(1);
      WebAsyncTask<String> task = new WebAsyncTask<>(50L, () -> {
        while (over.getCount() > 0) { // Spring interrupts it, and would take that for its result
          LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
        return "never";
      });
      task.onCompletion(over::countDown);
      task.onTimeout(() -> {
        Antipode.append(QUEUED);
        return "timed out";
      });
      return task;
    }

    @GetMapping("/throws")
    String fails() {
      Antipode.append(QUEUED);
      throw new IllegalStateException("broken");
    }
  }

  private static String kindOfThread() {
    return Thread.currentThread().getName().startsWith("task-") ? "the executor" : "another thread";
  }

  /** What runs on the executor of Spring Boot. */
  static class Tasks {
    @Async
    CompletableFuture<String> work() {
      Antipode.append(QUEUED);
      return CompletableFuture.completedFuture("done in " + kindOfThread());
    }
  }

  private static ConfigurableApplicationContext start(Class<?> service) {
    return new SpringApplicationBuilder(service)
        .bannerMode(Banner.Mode.OFF)
        .properties("server.port=0", "server.address=127.0.0.1", "logging.level.org=OFF")
        .run();
  }

  @BeforeAll
  static void start() {
    isolated = new Isolated();
    storage = start(Storage.class);
    gateway = start(Gateway.class);
  }

  @AfterAll
  static void stop() {
    gateway.close();
    storage.close();
    isolated.close();
  }

  private static String at(ConfigurableApplicationContext service, String path) {
    return "http://localhost:" + ((ServletWebServerApplicationContext) service).getWebServer().getPort() + path;
  }

  private HttpResponse<String> call(String path) throws Exception {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(at(gateway, path))).timeout(Duration.ofSeconds(60)).build();
    return client.send(request, BodyHandlers.ofString());
  }

  /** PROP-8, PROP-13, PROP-14: through both services, and back through both. */
  @ParameterizedTest
  @ValueSource(strings = {"/client", "/template"})
  void thereAndBack(String path) throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      HttpResponse<String> response = call(path + "?at=" + at(storage, "/store"));
      assertThat(response.statusCode()).isEqualTo(200);
      assertThat(response.body()).isEqualTo(Lineage.of(BEFORE, QUEUED).serialize());
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, QUEUED, STORED));
    }
  }

  /** SCOPE-11, SCOPE-12: what runs in another thread writes into the request's scope. */
  @ParameterizedTest
  @ValueSource(strings = {"/async", "/callable", "/deferred"})
  void whatRunsElsewhereKeepsTheScope(String path) throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      HttpResponse<String> response = call(path);
      assertThat(response.body()).isEqualTo("done in the executor");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, QUEUED));
    }
  }

  /** SCOPE-28: the container tells of a time-out in a thread of its own. */
  @ParameterizedTest
  @ValueSource(strings = {"/late", "/late-task"})
  void whatATimeOutWritesIsTheRequests(String path) throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      HttpResponse<String> response = call(path);
      assertThat(response.body()).isEqualTo("timed out");
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, QUEUED));
    }
  }

  /** PROP-13: Spring Boot's own page for what a controller has thrown. */
  @Test
  void anExceptionBringsTheWritesBack() throws Exception {
    try (LineageScope scope = Antipode.scope(Lineage.of(BEFORE))) {
      assertThat(call("/throws").statusCode()).isEqualTo(500);
      assertThat(scope.lineage()).isEqualTo(Lineage.of(BEFORE, QUEUED));
    }
  }
}
