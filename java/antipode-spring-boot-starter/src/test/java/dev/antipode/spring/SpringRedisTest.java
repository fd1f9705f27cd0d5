package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.WriteId;
import dev.antipode.lab.Lab;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.data.redis.RedisAutoConfiguration;
import org.springframework.boot.autoconfigure.data.redis.RedisReactiveAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;

/** Spring Data Redis on real servers: the factory that Spring Boot makes, with and without a pool (SHIM-1, SHIM-2, SHIM-13). */
@ExtendWith(AntipodeIsolated.class)
class SpringRedisTest {
  private static final String STORE = "blog-posts";

  private static Lab lab;

  @BeforeAll
  static void start() {
    lab = Lab.of("redis").replicas(1).up();
  }

  @AfterAll
  static void stop() {
    lab.close();
  }

  private static ApplicationContextRunner runner() {
    return new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(
            AntipodeAutoConfiguration.class, RedisAutoConfiguration.class, RedisReactiveAutoConfiguration.class))
        .withPropertyValues(
            "spring.data.redis.port=" + lab.server("redis", "a").port(),
            "spring.data.redis.host=127.0.0.1",
            "antipode.stores.blog-posts.bean=redisConnectionFactory",
            "antipode.stores.blog-posts.replicas=" + lab.server("redis", "b1").url());
  }

  /** Transactions and pipelines have connections of their own, out of the pool or made for them. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void writesAreRecordedAndWaitedFor(boolean pooled) {
    runner().withPropertyValues("spring.data.redis.lettuce.pool.enabled=" + pooled).run(context -> {
      assertThat(context).hasNotFailed();
      StringRedisTemplate template = context.getBean(StringRedisTemplate.class);
      List<Runnable> writes = List.of(
          () -> template.opsForValue().set("k", "v"),
          () -> template.execute(new SessionCallback<List<Object>>() {
            @Override
            @SuppressWarnings("unchecked") // of strings, as the template has it
            public <K, V> List<Object> execute(RedisOperations<K, V> operations) {
              operations.multi();
              operations.opsForValue().set((K) "k", (V) "w");
              return operations.exec();
            }
          }),
          () -> assertThat(template.executePipelined((RedisCallback<Object>) connection -> {
            connection.stringCommands().set("k".getBytes(), "x".getBytes());
            connection.stringCommands().get("k".getBytes());
            return null;
          })).isEqualTo(List.of(true, "x")),
          () -> assertThat(context.getBean(ReactiveStringRedisTemplate.class).opsForHash().putAll("h", Map.of("a", "1"))
              .block(Duration.ofSeconds(20))).isTrue());
      for (Runnable write : writes) {
        try (LineageScope scope = Antipode.scope()) {
          write.run();
          assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
          assertThat(scope.lineage().isComplete()).isTrue();
          assertThat(scope.pending()).isEmpty();
          assertThat(Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(20))).satisfied()).isTrue();
        }
      }
      assertThat(template.opsForValue().get("k")).isEqualTo("x");
      assertThat(context.getBean(RedisConnectionFactory.class)).isInstanceOf(LettuceConnectionFactory.class);
    });
  }

  /** Without replicas its own server is the one that a barrier asks, from the first request on. */
  @Test
  void theServerItselfIsKnownAtOnce() {
    runner().withPropertyValues("antipode.stores.blog-posts.replicas=").run(context -> {
      assertThat(context).hasNotFailed();
      WriteId written;
      try (LineageScope scope = Antipode.scope()) {
        context.getBean(StringRedisTemplate.class).opsForValue().set("k", "v");
        written = scope.lineage().ofStore(STORE).get(0);
      }
      try (LineageScope scope = Antipode.scope(Lineage.of(written))) {
        assertThat(Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(20))).satisfied()).isTrue();
      }
    });
  }

  @Test
  void aServerThatIsNotThereIsNoMistake() {
    runner().withPropertyValues("antipode.stores.blog-posts.replicas=", "spring.data.redis.port=1").run(context ->
        assertThat(context).hasNotFailed());
  }

  @Test
  void whatTheApplicationHasSaidStays() {
    runner().withBean("redisConnectionFactory", LettuceConnectionFactory.class, () -> {
      RedisStandaloneConfiguration where = new RedisStandaloneConfiguration("127.0.0.1", lab.server("redis", "a").port());
      where.setDatabase(2);
      LettuceConnectionFactory mine = new LettuceConnectionFactory(where);
      mine.setShareNativeConnection(false);
      mine.setValidateConnection(true);
      mine.setPhase(7);
      return mine;
    }).run(context -> {
      LettuceConnectionFactory wrapped = context.getBean(LettuceConnectionFactory.class);
      assertThat(wrapped.getShareNativeConnection()).isFalse();
      assertThat(wrapped.getValidateConnection()).isTrue();
      assertThat(wrapped.getPhase()).isEqualTo(7);
      assertThat(wrapped.getDatabase()).isEqualTo(2);
      try (LineageScope scope = Antipode.scope()) {
        context.getBean(StringRedisTemplate.class).opsForValue().set("k", "v");
        assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      }
    });
  }

  @Test
  void whatCannotBeWrappedIsRefused() {
    runner().withBean("redisConnectionFactory", LettuceConnectionFactory.class,
        () -> new LettuceConnectionFactory(new RedisClusterConfiguration(List.of("127.0.0.1:1")))).run(context ->
        assertThat(context).getFailure().hasStackTraceContaining("want one server, or Sentinels"));
    runner().withBean("redisConnectionFactory", LettuceConnectionFactory.class, () -> new LettuceConnectionFactory() { })
        .run(context -> assertThat(context).getFailure().hasStackTraceContaining("doCreateConnectionProvider()"));
  }
}
