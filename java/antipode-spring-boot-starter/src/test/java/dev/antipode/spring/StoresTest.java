package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.lab.Lab;
import dev.antipode.lab.LabServer;
import dev.antipode.lab.Repository;
import dev.antipode.testing.AntipodeIsolated;
import io.lettuce.core.api.StatefulRedisConnection;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.boot.autoconfigure.jdbc.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.autoconfigure.jdbc.JdbcTemplateAutoConfiguration;
import org.springframework.boot.autoconfigure.transaction.TransactionAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Transactional;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;

/** Beans of real stores that a property names: transactions of Spring on PostgreSQL, and Jedis (SHIM-2, SCOPE-14, SCOPE-17). */
@ExtendWith(AntipodeIsolated.class)
class StoresTest {
  private static final String INSERT = "INSERT INTO posts (key, value) VALUES (?, 'hi')";

  private static Lab lab;

  private final ApplicationContextRunner runner = new ApplicationContextRunner()
      .withConfiguration(AutoConfigurations.of(
          AntipodeAutoConfiguration.class,
          DataSourceAutoConfiguration.class,
          DataSourceTransactionManagerAutoConfiguration.class,
          TransactionAutoConfiguration.class,
          JdbcTemplateAutoConfiguration.class));

  @BeforeAll
  static void start() throws Exception {
    lab = Lab.of("postgresql", "redis").replicas(1).up();
    PGSimpleDataSource plain = new PGSimpleDataSource();
    plain.setUrl(jdbc("a"));
    plain.setUser("app");
    try (Connection connection = plain.getConnection(); Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE posts (key text PRIMARY KEY, value text)");
    }
    // What the shim needs of the server, as an operator prepares it.
    String url = "postgresql://postgres@127.0.0.1:" + lab.server("postgresql", "a").port() + "/app";
    String command = Repository.root().resolve(".venv/bin/antipode").toString();
    Process init = new ProcessBuilder(command, "init", "blog-posts", "--at", url, "--user", "app", "--run", "--yes")
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

  /** A service with transactions, as people write them. */
  @Configuration(proxyBeanMethods = false)
  static class Application {
    @Bean
    Posts posts(JdbcTemplate jdbc) {
      return new Posts(jdbc);
    }
  }

  /** Notes the lineage inside of its transactions. */
  static class Posts {
    private final JdbcTemplate jdbc;
    private final AtomicReference<Lineage> seen = new AtomicReference<>();

    Posts(JdbcTemplate jdbc) {
      this.jdbc = jdbc;
    }

    @Transactional
    void add(String key, boolean fails) {
      jdbc.update(INSERT, key);
      seen.set(Antipode.deserialize(Antipode.serialize()));
      if (fails) {
        throw new IllegalStateException("no");
      }
    }

    /** What the transaction saw; this object is a proxy outside of it. */
    Lineage inside() {
      return seen.get();
    }

    @Transactional(readOnly = true)
    Integer count(String key) {
      return jdbc.queryForObject("SELECT count(*) FROM posts WHERE key = ?", Integer.class, key);
    }
  }

  private static String jdbc(String server) {
    return "jdbc:postgresql://127.0.0.1:" + lab.server("postgresql", server).port() + "/app";
  }

  private ApplicationContextRunner application() {
    return runner.withUserConfiguration(Application.class).withPropertyValues(
        "spring.datasource.url=" + jdbc("a"),
        "spring.datasource.username=app",
        "antipode.stores.blog-posts.bean=dataSource",
        "antipode.stores.blog-posts.replicas=" + jdbc("b1"),
        "antipode.stores.blog-posts.timeout=30s");
  }

  /** SCOPE-14: pending inside, there when the commit has returned; and a barrier waits for the standby. */
  @Test
  void aTransactionThatCommits() {
    application().run(context -> {
      assertThat(context).hasNotFailed();
      Posts posts = context.getBean(Posts.class);
      try (LineageScope scope = Antipode.scope()) {
        posts.add("committed", false);
        assertThat(posts.inside().ids()).isEmpty();
        assertThat(posts.inside().incomplete()).containsExactly("blog-posts");
        assertThat(scope.lineage().stores()).containsExactly("blog-posts");
        assertThat(scope.lineage().isComplete()).isTrue();
        assertThat(scope.pending()).isEmpty();
        BarrierResult result = Antipode.barrier(BarrierOptions.defaults().stores("blog-posts"));
        assertThat(result.satisfied()).as(result.explain()).isTrue();
        Lineage before = scope.lineage();
        assertThat(posts.count("committed")).isEqualTo(1);
        assertThat(scope.lineage()).isEqualTo(before);
      }
    });
  }

  /** SCOPE-17: nothing. */
  @Test
  void aTransactionThatRollsBack() {
    application().run(context -> {
      Posts posts = context.getBean(Posts.class);
      try (LineageScope scope = Antipode.scope()) {
        assertThatThrownBy(() -> posts.add("never", true)).hasMessage("no");
        assertThat(posts.inside().incomplete()).containsExactly("blog-posts");
        assertThat(scope.lineage().hasContent()).isFalse();
        assertThat(scope.pending()).isEmpty();
        assertThat(posts.count("never")).isZero();
      }
    });
  }

  /** The pool is what it was, and one that no property names stays plain. */
  @Test
  void thePoolBehindIsStillThere() throws Exception {
    application().run(context -> {
      DataSource wrapped = context.getBean(DataSource.class);
      assertThat(wrapped).isNotInstanceOf(HikariDataSource.class);
      assertThat(wrapped.unwrap(HikariDataSource.class).getJdbcUrl()).isEqualTo(jdbc("a"));
    });
    runner.withPropertyValues("spring.datasource.url=" + jdbc("a"), "spring.datasource.username=app")
        .run(context -> assertThat(context.getBean(DataSource.class)).isInstanceOf(HikariDataSource.class));
  }

  /** Jedis: a bean of a client, and its writes in the scope. */
  @Test
  void jedis() {
    LabServer primary = lab.server("redis", "a");
    new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(AntipodeAutoConfiguration.class))
        .withBean("sessions", UnifiedJedis.class, () -> RedisClient.create(primary.host(), primary.port()))
        .withPropertyValues(
            "antipode.stores.user-sessions.bean=sessions",
            "antipode.stores.user-sessions.replicas=" + lab.server("redis", "b1").url())
        .run(context -> {
          assertThat(context).hasNotFailed();
          try (LineageScope scope = Antipode.scope()) {
            context.getBean(UnifiedJedis.class).set("k", "v");
            assertThat(scope.lineage().stores()).containsExactly("user-sessions");
            BarrierResult result =
                Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(30)));
            assertThat(result.satisfied()).as(result.explain()).isTrue();
          }
        });
  }

  /** Lettuce: a bean of a connection. */
  @Test
  void lettuce() {
    io.lettuce.core.RedisClient client = io.lettuce.core.RedisClient.create(lab.server("redis", "a").url());
    new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(AntipodeAutoConfiguration.class))
        .withBean("drafts", StatefulRedisConnection.class, client::connect)
        .withPropertyValues(
            "antipode.stores.drafts.bean=drafts",
            "antipode.stores.drafts.replicas=" + lab.server("redis", "b1").url())
        .run(context -> {
          assertThat(context).hasNotFailed();
          @SuppressWarnings("unchecked")
          StatefulRedisConnection<String, String> drafts = context.getBean(StatefulRedisConnection.class);
          try (LineageScope scope = Antipode.scope()) {
            drafts.sync().set("k", "v");
            assertThat(scope.lineage().stores()).containsExactly("drafts");
            BarrierResult result =
                Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(30)));
            assertThat(result.satisfied()).as(result.explain()).isTrue();
          }
        });
    client.shutdown();
  }
}
