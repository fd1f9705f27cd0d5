package dev.antipode.spring;

import dev.antipode.http.ApacheAttempts;
import dev.antipode.http.JudgedRedirects;
import dev.antipode.shim.Logs;
import java.util.Collection;
import java.util.Set;
import java.util.function.Consumer;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.NoSuchBeanDefinitionException;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.http.client.ClientHttpRequestFactorySettings;
import org.springframework.boot.http.client.ClientHttpRequestFactorySettings.Redirects;
import org.springframework.boot.http.client.HttpComponentsClientHttpRequestFactoryBuilder;
import org.springframework.http.client.ClientHttpRequestFactory;

/**
 * Has the HTTP clients that Spring Boot builds follow redirects by {@link JudgedRedirects}, and not beneath the interceptor
 * (TRUST-26). What the application says of redirects, of one client or by a property, stays; so does a builder of its own.
 */
final class JudgedFactories implements BeanPostProcessor, BeanFactoryAware {
  /** Those that follow nothing where they are told so. {@code HttpURLConnection} is not: Spring Boot does not tell it. */
  private static final Set<String> OBEDIENT = Set.of(
      "org.springframework.http.client.JdkClientHttpRequestFactory",
      "org.springframework.http.client.HttpComponentsClientHttpRequestFactory",
      "org.springframework.http.client.JettyClientHttpRequestFactory",
      "org.springframework.http.client.ReactorClientHttpRequestFactory");

  private static final String APACHES = "HttpComponentsClientHttpRequestFactoryBuilder";

  private ConfigurableListableBeanFactory beans;

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (!(bean instanceof ClientHttpRequestFactoryBuilder<?> builder)) {
      return bean;
    }
    if (isOfSpringBoot(name)) {
      return new JudgedFactoryBuilder(bean.getClass().getSimpleName().equals(APACHES) ? Apache.seen(bean) : builder);
    }
    unjudged("the application's own " + bean.getClass().getSimpleName());
    return bean;
  }

  private boolean isOfSpringBoot(String name) {
    try {
      String maker = beans == null ? null : beans.getBeanDefinition(name).getFactoryBeanName();
      return maker != null && maker.startsWith("org.springframework.boot.");
    } catch (NoSuchBeanDefinitionException none) {
      return false;
    }
  }

  private static void unjudged(String what) {
    Logs.info(
        "AP404",
        "redirects " + what,
        "HTTP clients of " + what + " may follow redirects by themselves to hosts that nobody has judged: no lineage goes along. "
            + "Let them follow none, and wrap their request factory: new JudgedRedirects(factory)");
  }

  @Override
  public void setBeanFactory(BeanFactory factory) {
    beans = factory instanceof ConfigurableListableBeanFactory listable ? listable : null;
  }

  /** A class of its own: without Apache's client it is not looked at. */
  private static final class Apache {
    /** Its client repeats calls by itself: each attempt is seen (PROP-30). */
    static ClientHttpRequestFactoryBuilder<?> seen(Object builder) {
      return ((HttpComponentsClientHttpRequestFactoryBuilder) builder).withHttpClientCustomizer(ApacheAttempts::see);
    }
  }

  /** Spring Boot's builder of request factories. */
  private record JudgedFactoryBuilder(ClientHttpRequestFactoryBuilder<?> plain)
      implements ClientHttpRequestFactoryBuilder<ClientHttpRequestFactory> {
    @Override
    public ClientHttpRequestFactory build(ClientHttpRequestFactorySettings said) {
      ClientHttpRequestFactorySettings settings = said == null ? ClientHttpRequestFactorySettings.defaults() : said;
      ClientHttpRequestFactory single = plain.build(settings.withRedirects(Redirects.DONT_FOLLOW));
      if (!OBEDIENT.contains(single.getClass().getName())) {
        unjudged(single.getClass().getSimpleName());
        return plain.build(said);
      }
      return settings.redirects() == Redirects.DONT_FOLLOW
          ? JudgedRedirects.withoutFollowing(single)
          : new JudgedRedirects(single);
    }

    // Customizers are of the plain builder's factories:

    @Override
    public ClientHttpRequestFactoryBuilder<ClientHttpRequestFactory> withCustomizer(
        Consumer<ClientHttpRequestFactory> customizer) {
      return new JudgedFactoryBuilder(typed().withCustomizer(customizer));
    }

    @Override
    public ClientHttpRequestFactoryBuilder<ClientHttpRequestFactory> withCustomizers(
        Collection<Consumer<ClientHttpRequestFactory>> customizers) {
      return new JudgedFactoryBuilder(typed().withCustomizers(customizers));
    }

    @SuppressWarnings("unchecked") // whoever has a customizer knows of which factories
    private ClientHttpRequestFactoryBuilder<ClientHttpRequestFactory> typed() {
      return (ClientHttpRequestFactoryBuilder<ClientHttpRequestFactory>) plain;
    }
  }
}
