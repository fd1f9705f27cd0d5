package dev.antipode.spring;

import dev.antipode.ConfigurationException;
import dev.antipode.StoreOptions;
import dev.antipode.shim.Shims;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.SingletonBeanRegistry;
import org.springframework.core.Ordered;

/**
 * Wraps the beans that {@code antipode.stores.<name>.bean} names, each by the shim of its kind, and registers the stores that
 * have servers and no bean.
 */
final class StoreBeans implements BeanPostProcessor, Ordered, BeanFactoryAware, SmartInitializingSingleton {
  private static final Map<String, ClientKind> KINDS = ClientKind.present(StoreBeans.class.getClassLoader());

  private final Map<String, StoreOptions> byBean = new HashMap<>();
  private final Set<String> wrapped = ConcurrentHashMap.newKeySet();
  private BeanFactory beans;

  StoreBeans(Map<String, StoreProperties> stores) {
    stores.forEach((name, properties) -> {
      StoreOptions options = properties.options(name);
      if (properties.bean().isEmpty()) {
        Shims.register(options);
      }
      for (String bean : properties.bean()) {
        StoreOptions other = byBean.put(bean, options);
        if (other != null) {
          throw new ConfigurationException(
              "AP501", "the bean \"" + bean + "\" is a client of one store alone: " + other.name() + " or " + name);
        }
      }
    });
  }

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    StoreOptions options = namesOf(name).map(byBean::get).filter(Objects::nonNull).findFirst().orElse(null);
    if (options == null || bean instanceof FactoryBean) { // its product comes by itself, under the same name
      return bean;
    }
    for (ClientKind kind : KINDS.values()) {
      Object recording = kind.wrap(bean, options);
      if (recording != null) {
        namesOf(name).forEach(wrapped::add);
        return recording;
      }
    }
    throw new ConfigurationException(
        "AP501",
        property(options) + "=" + name + ": that bean is a " + bean.getClass().getName() + "; with what is on the class path "
            + (KINDS.isEmpty() ? "nothing can be wrapped" : "want " + String.join(" or ", KINDS.keySet()))
            + ". The shims are dev.antipode:antipode-<store>.");
  }

  /** A bean's name, and its aliases. */
  private Stream<String> namesOf(String name) {
    return Stream.concat(Stream.of(name), beans == null ? Stream.empty() : Arrays.stream(beans.getAliases(name)));
  }

  private static String property(StoreOptions options) {
    return "antipode.stores." + options.name() + ".bean";
  }

  /** All beans are there, or can be made: the writes of one that was named and is not would go unrecorded. */
  @Override
  public void afterSingletonsInstantiated() {
    byBean.forEach((bean, options) -> {
      if (!beans.containsBean(bean)) {
        String near = Shims.nearest(bean, candidates());
        throw new ConfigurationException(
            "AP501",
            property(options) + "=" + bean + ": there is no such bean."
                + (near == null ? "" : " Did you mean \"" + near + "\"?"));
      }
      if (isMade(bean) && !wrapped.contains(bean)) {
        throw new ConfigurationException(
            "AP501",
            property(options) + "=" + bean + ": that bean was made before it could be wrapped, for a BeanPostProcessor or a "
                + "BeanFactoryPostProcessor that needs it. Let that take an ObjectProvider of it.");
      }
    });
  }

  /** Whether the one instance of a bean is there, and can have been wrapped. */
  private boolean isMade(String bean) {
    if (!(beans instanceof SingletonBeanRegistry made)
        || namesOf(bean).noneMatch(made::containsSingleton)
        || !beans.isSingleton(bean)) {
      return false;
    }
    beans.getBean(bean); // of a FactoryBean there may be no more yet than itself
    return true;
  }

  private List<String> candidates() {
    return beans instanceof ListableBeanFactory listable
        ? new ArrayList<>(Arrays.asList(listable.getBeanDefinitionNames()))
        : List.of();
  }

  @Override
  public void setBeanFactory(BeanFactory factory) {
    beans = factory;
  }

  /** Last: round what other processors have made of a client. */
  @Override
  public int getOrder() {
    return LOWEST_PRECEDENCE;
  }
}
