package dev.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.ConfigurationException;
import dev.antipode.testing.AntipodeIsolated;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;

/** Beans that factories make, in all the ways that Spring has, and class paths that lack a client. Nothing is connected to. */
@ExtendWith(AntipodeIsolated.class)
class FactoriesTest {
  private final ApplicationContextRunner runner = new ApplicationContextRunner()
      .withConfiguration(AutoConfigurations.of(AntipodeAutoConfiguration.class))
      .withPropertyValues(
          "antipode.stores.blog-posts.bean=posts",
          "antipode.stores.blog-posts.replicas=jdbc:postgresql://127.0.0.1:1/app");

  private static PGSimpleDataSource plain() {
    PGSimpleDataSource plain = new PGSimpleDataSource();
    plain.setUrl("jdbc:postgresql://127.0.0.1:1/app?connectTimeout=1");
    return plain;
  }

  /** A factory; one of prototypes makes a client each time. */
  static class Posts implements FactoryBean<DataSource> {
    static final AtomicInteger MADE = new AtomicInteger();
    private final boolean isSingleton;

    Posts(boolean isSingleton) {
      this.isSingleton = isSingleton;
    }

    @Override
    public DataSource getObject() {
      MADE.incrementAndGet();
      return plain();
    }

    @Override
    public Class<?> getObjectType() {
      return DataSource.class;
    }

    @Override
    public boolean isSingleton() {
      return isSingleton;
    }
  }

  @Test
  void whatAFactoryMakesIsWrapped() {
    Posts.MADE.set(0);
    runner.withBean("posts", Posts.class, () -> new Posts(true)).run(context -> {
      assertThat(context).hasNotFailed();
      DataSource posts = context.getBean("posts", DataSource.class);
      assertThat(posts).isNotInstanceOf(PGSimpleDataSource.class);
      assertThat(posts.unwrap(PGSimpleDataSource.class)).isNotNull();
      assertThat(context.getBean("&posts")).isInstanceOf(Posts.class);
      assertThat(Posts.MADE).hasValue(1);
    });
  }

  @Test
  void whatAFactoryMakesEachTimeIsWrappedEachTime() {
    Posts.MADE.set(0);
    runner.withBean("posts", Posts.class, () -> new Posts(false)).run(context -> {
      assertThat(context).hasNotFailed();
      assertThat(Posts.MADE).hasValue(0);
      assertThat(context.getBean("posts")).isNotInstanceOf(PGSimpleDataSource.class).isNotSameAs(context.getBean("posts"));
    });
  }

  /** SHIM-50: a bean of two names is wrapped by either. */
  @Configuration(proxyBeanMethods = false)
  static class Aliased {
    @Bean({"dataSource", "posts"})
    DataSource dataSource() {
      return plain();
    }
  }

  @Test
  void anAliasIsTheBean_SHIM_50() {
    runner.withUserConfiguration(Aliased.class).run(context -> {
      assertThat(context).hasNotFailed();
      assertThat(context.getBean("dataSource").getClass().getName()).startsWith("dev.antipode.postgresql.");
    });
    runner.withUserConfiguration(Aliased.class)
        .withInitializer(context -> context.addBeanFactoryPostProcessor(factory -> factory.getBean("dataSource")))
        .run(context -> assertThat(context).getFailure().hasMessageContaining("made before it could be wrapped"));
  }

  @Configuration(proxyBeanMethods = false)
  static class Scoped {
    @Bean
    @Scope(value = BeanDefinition.SCOPE_PROTOTYPE, proxyMode = ScopedProxyMode.INTERFACES)
    DataSource posts() {
      return plain();
    }
  }

  @Test
  void aScopedProxyIsWrapped() {
    runner.withUserConfiguration(Scoped.class).run(context -> {
      assertThat(context).hasNotFailed();
      assertThat(context.getBean("posts").getClass().getName()).startsWith("dev.antipode.postgresql.");
    });
  }

  /** A factory whose product was made before is found out as any other bean is. */
  @Test
  void aProductThatWasMadeTooEarlyIsAnError() {
    runner.withBean("posts", Posts.class, () -> new Posts(true))
        .withInitializer(context -> context.addBeanFactoryPostProcessor(factory -> factory.getBean("posts")))
        .run(context -> assertThat(context).getFailure().hasMessageContaining("made before it could be wrapped"));
  }

  /** What a process does whose class path lacks a client. */
  static final class WithoutClient {
    private WithoutClient() {}

    /** Names a bean that nothing can wrap. */
    public static void main(String[] none) {
      StoreProperties properties = new StoreProperties(
          List.of("posts"), null, null, null, null, null, null, null, null, null, null, null, null);
      try {
        new StoreBeans(Map.of("blog-posts", properties)).postProcessAfterInitialization("no client", "posts");
      } catch (ConfigurationException error) {
        System.out.println(error.getMessage());
      }
    }
  }

  @Test
  void aShimWhoseClientIsMissingIsNoneThatCanWrap() throws Exception {
    String path = Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(entry -> !Path.of(entry).getFileName().toString().startsWith("jedis"))
        .collect(Collectors.joining(File.pathSeparator));
    Path output = Files.createTempFile("antipode-class-path-", ".txt");
    Process process = new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp", path, WithoutClient.class.getName())
        .redirectErrorStream(true).redirectOutput(output.toFile()).start();
    boolean hasEnded = process.waitFor(60, TimeUnit.SECONDS);
    process.destroyForcibly();
    String said = Files.readString(output);
    Files.delete(output);
    assertThat(hasEnded).as(said).isTrue();
    assertThat(said).contains("that bean is a java.lang.String", "DataSource").doesNotContain("Jedis");
  }
}
