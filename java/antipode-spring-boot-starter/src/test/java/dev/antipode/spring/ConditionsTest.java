package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.grpc.AntipodeGrpc;
import dev.antipode.http.AntipodeClientInterceptor;
import dev.antipode.http.AntipodeFilter;
import dev.antipode.testing.AntipodeIsolated;
import io.grpc.ClientInterceptor;
import io.grpc.ServerInterceptor;
import jakarta.servlet.Filter;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.task.TaskExecutionAutoConfiguration;
import org.springframework.boot.autoconfigure.task.TaskSchedulingAutoConfiguration;
import org.springframework.boot.autoconfigure.web.client.RestClientAutoConfiguration;
import org.springframework.boot.autoconfigure.web.client.RestTemplateAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.web.client.RestTemplateBuilder;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.core.task.AsyncTaskExecutor;
import org.springframework.core.task.TaskDecorator;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.web.client.RestClient;

/** What is there, and when it is not. */
@ExtendWith(AntipodeIsolated.class)
class ConditionsTest {
  private static final WriteId WRITE = WriteId.position("blog-posts", "e", 1);
  private static final WriteId LATER = WriteId.position("user-acl", "e", 7);
  private static final AutoConfigurations ALL = AutoConfigurations.of(
      AntipodeAutoConfiguration.class,
      TaskExecutionAutoConfiguration.class,
      RestClientAutoConfiguration.class,
      RestTemplateAutoConfiguration.class);

  private final ApplicationContextRunner runner = new ApplicationContextRunner().withConfiguration(ALL);
  private final WebApplicationContextRunner web = new WebApplicationContextRunner().withConfiguration(ALL);

  @Test
  void aWebApplicationHasTheFilterOutsideOfAllOthers() {
    web.run(context -> {
      FilterRegistrationBean<?> filter = context.getBean("antipodeFilter", FilterRegistrationBean.class);
      assertThat(filter.getFilter()).isInstanceOf(AntipodeFilter.class);
      assertThat(filter.getOrder()).isEqualTo(Ordered.HIGHEST_PRECEDENCE);
      assertThat(filter.isAsyncSupported()).isTrue();
    });
    runner.run(context -> assertThat(context).hasNotFailed().doesNotHaveBean("antipodeFilter"));
  }

  @Test
  void itCanBeSwitchedOff() {
    web.withPropertyValues("antipode.enabled=false", "antipode.timeout=nonsense").run(context -> {
      assertThat(context).hasNotFailed();
      assertThat(List.of(context.getBeanDefinitionNames())).noneMatch(name -> name.startsWith("antipode"));
    });
  }

  /** Each class that may be missing is missed by nothing else. */
  @ParameterizedTest
  @ValueSource(classes = {AntipodeFilter.class, Filter.class, AntipodeClientInterceptor.class, RestClient.class,
      AntipodeGrpc.class, ServerInterceptor.class})
  void itStartsWithoutWhatIsOptional(Class<?> missing) {
    runner.withClassLoader(new FilteredClassLoader(missing)).run(context ->
        assertThat(context).hasNotFailed().hasSingleBean(SpringSettings.class).hasBean("antipodeThreadPools"));
  }

  @Test
  void aFilterOfTheApplicationsOwnStays() {
    web.withBean("own", AntipodeFilter.class, () -> new AntipodeFilter(true)).run(context ->
        assertThat(context).hasSingleBean(AntipodeFilter.class).doesNotHaveBean(FilterRegistrationBean.class));
  }

  @Test
  void buildersMakeClientsThatCarryLineages() {
    runner.run(context -> {
      assertThat(context.getBean(RestTemplateBuilder.class).build().getInterceptors())
          .hasOnlyElementsOfType(AntipodeClientInterceptor.class).hasSize(1);
      AtomicReference<List<?>> interceptors = new AtomicReference<>();
      context.getBean(RestClient.Builder.class).requestInterceptors(list -> interceptors.set(List.copyOf(list)));
      assertThat(interceptors.get()).hasSize(1).allMatch(AntipodeClientInterceptor.class::isInstance);
    });
  }

  @Test
  void interceptorsForGrpcAreThereWhereThatModuleIs() {
    runner.run(context ->
        assertThat(context).hasSingleBean(ServerInterceptor.class).hasSingleBean(ClientInterceptor.class));
    runner.withClassLoader(new FilteredClassLoader(AntipodeGrpc.class)).run(context ->
        assertThat(context).doesNotHaveBean("antipodeGrpcServerInterceptor"));
  }

  /** SCOPE-12: threads, and with virtual threads or not, the executor that Spring Boot makes keeps the scope. */
  @ParameterizedTest
  @ValueSource(strings = {"spring.task.execution.pool.core-size=2", "spring.task.execution.mode=force"})
  void theExecutorKeepsTheScope(String property) {
    runner.withPropertyValues(property).run(context -> {
      try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
        AsyncTaskExecutor executor = context.getBean("applicationTaskExecutor", AsyncTaskExecutor.class);
        assertThat(executor.submit(LineageScope::current).get(30, TimeUnit.SECONDS)).isSameAs(scope);
      }
    });
  }

  /** What is carried twice costs twice. */
  @Test
  void withoutADecoratorOfTheApplicationsOursIsTheOnlyOne() {
    runner.withPropertyValues("spring.task.execution.mode=force").run(context ->
        assertThat(context.getBean("applicationTaskExecutor"))
            .extracting("taskDecorator").isSameAs(context.getBean(TaskDecorator.class)));
  }

  /** The application's decorator works beside ours, and sees the scope. */
  @Test
  void aDecoratorOfTheApplicationsOwnStays() {
    runner.withUserConfiguration(Decorated.class).run(context -> {
      assertThat(context).hasSingleBean(TaskDecorator.class);
      AsyncTaskExecutor executor = context.getBean(AsyncTaskExecutor.class);
      try (LineageScope scope = Antipode.scope()) {
        executor.submit(() -> Antipode.append(WRITE)).get(30, TimeUnit.SECONDS);
        assertThat(scope.lineage()).isEqualTo(Lineage.of(WRITE));
        assertThat(Decorated.SEEN.get()).isSameAs(scope);
      }
    });
  }

  @Configuration(proxyBeanMethods = false)
  static class Decorated {
    static final AtomicReference<LineageScope> SEEN = new AtomicReference<>();

    @Bean
    TaskDecorator own() {
      return task -> () -> {
        SEEN.set(LineageScope.current());
        task.run();
      };
    }
  }

  /** A task of a timer. */
  @Configuration(proxyBeanMethods = false)
  @EnableScheduling
  static class Timed {
    static final BlockingQueue<Optional<Lineage>> SEEN = new LinkedBlockingQueue<>();

    @Scheduled(fixedDelay = 20)
    void tick() {
      LineageScope scope = LineageScope.current();
      if (scope != null) {
        Antipode.append(WRITE);
      }
      SEEN.add(Optional.ofNullable(scope).map(LineageScope::lineage));
    }
  }

  /** SCOPE-28: what a timer begins has nobody's scope, so each run has its own. */
  @Test
  void eachRunOfATimerHasAScopeOfItsOwn() {
    runner.withConfiguration(AutoConfigurations.of(TaskSchedulingAutoConfiguration.class))
        .withUserConfiguration(Timed.class)
        .run(context -> {
          for (int run = 0; run < 2; run++) {
            assertThat(Timed.SEEN.poll(60, TimeUnit.SECONDS)).hasValue(Lineage.of(WRITE));
          }
        });
  }

  /** A task of a timer by the clock. */
  @Configuration(proxyBeanMethods = false)
  @EnableScheduling
  static class TimedByTheClock {
    private final BlockingQueue<Optional<Lineage>> seen = new LinkedBlockingQueue<>();
    private boolean isLater;

    @Scheduled(cron = "* * * * * *")
    void tick() {
      LineageScope scope = LineageScope.current();
      if (scope != null) {
        Antipode.append(isLater ? LATER : WRITE);
      }
      isLater = true;
      seen.add(Optional.ofNullable(scope).map(LineageScope::lineage));
    }
  }

  /** SCOPE-28: Spring's pool begins each run inside the one before, and an application's own has no decorator. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void eachRunByTheClockHasAScopeOfItsOwn_SCOPE_28(boolean isOwn) {
    (isOwn ? runner.withBean("taskScheduler", ThreadPoolTaskScheduler.class) : runner)
        .withConfiguration(AutoConfigurations.of(TaskSchedulingAutoConfiguration.class))
        .withUserConfiguration(TimedByTheClock.class)
        .run(context -> {
          assertThat(context).hasSingleBean(ThreadPoolTaskScheduler.class);
          TimedByTheClock timed = context.getBean(TimedByTheClock.class);
          assertThat(timed.seen.poll(60, TimeUnit.SECONDS)).hasValue(Lineage.of(WRITE));
          assertThat(timed.seen.poll(60, TimeUnit.SECONDS)).hasValue(Lineage.of(LATER));
        });
  }

  /** A scheduler and no task. */
  @Configuration(proxyBeanMethods = false)
  @EnableScheduling
  static class Scheduling {}

  /** SCOPE-28: behind the response its scope is closed, and what was written there would be lost. */
  @Test
  void whatARequestSchedulesGoesOnBehindIt() {
    runner.withConfiguration(AutoConfigurations.of(TaskSchedulingAutoConfiguration.class))
        .withUserConfiguration(Scheduling.class)
        .run(context -> {
          TaskScheduler scheduler = context.getBean(TaskScheduler.class); // of one thread
          BlockingQueue<Lineage> rate = new LinkedBlockingQueue<>();
          BlockingQueue<Lineage> once = new LinkedBlockingQueue<>();
          CountDownLatch answered = new CountDownLatch(1);
          try (LineageScope scope = Antipode.scope(Lineage.of(WRITE))) {
            scheduler.scheduleAtFixedRate(() -> {
              rate.add(written());
              await(answered);
            }, Duration.ofMillis(20));
            assertThat(rate.poll(60, TimeUnit.SECONDS)).isEqualTo(Lineage.of(WRITE, LATER));
            scheduler.schedule(() -> once.add(written()), Instant.now());
          }
          answered.countDown();
          assertThat(rate.poll(60, TimeUnit.SECONDS)).as("the timer's").isEqualTo(Lineage.of(LATER));
          assertThat(once.poll(60, TimeUnit.SECONDS)).as("the request's").isEqualTo(Lineage.of(WRITE, LATER));
        });
  }

  private static Lineage written() {
    Antipode.append(LATER);
    LineageScope scope = LineageScope.current();
    return scope == null || scope.isClosed() ? Lineage.EMPTY : scope.lineage();
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }
}
