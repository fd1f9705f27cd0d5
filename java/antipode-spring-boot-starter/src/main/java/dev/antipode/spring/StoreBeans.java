package dev.antipode.spring;

import dev.antipode.ConfigurationException;
import dev.antipode.StoreOptions;
import dev.antipode.configuration.NearestName;
import dev.antipode.postgresql.AntipodePostgres;
import dev.antipode.redis.AntipodeRedis;
import dev.antipode.shim.Shims;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.sql.DataSource;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.SingletonBeanRegistry;
import org.springframework.core.Ordered;
import org.springframework.util.ClassUtils;
import redis.clients.jedis.UnifiedJedis;

/**
 * Wraps the beans that {@code antipode.stores.<name>.bean} names, each by the shim of its kind, and registers the stores that
 * have servers and no bean.
 */
final class StoreBeans implements BeanPostProcessor, Ordered, BeanFactoryAware, SmartInitializingSingleton {
  /** What the class path has shims for. */
  private interface Kind {
    /** Round this bean, or null where it is of another kind. */
    Object wrap(Object bean, StoreOptions options);
  }

  private static final Map<String, Kind> KINDS = kinds();

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
              "the bean \"" + bean + "\" is a client of one store alone: " + other.name() + " or " + name);
        }
      }
    });
  }

  private static Map<String, Kind> kinds() {
    Map<String, Kind> kinds = new HashMap<>();
    if (isPresent("dev.antipode.postgresql.AntipodePostgres")) {
      kinds.put("a javax.sql.DataSource", new Postgresql());
    }
    if (isPresent("dev.antipode.redis.AntipodeRedis")) {
      kinds.put("a redis.clients.jedis.UnifiedJedis", new Redis());
    }
    return kinds;
  }

  private static boolean isPresent(String name) {
    return ClassUtils.isPresent(name, StoreBeans.class.getClassLoader());
  }

  // Each a class of its own: one that is never made does not look for its shim.

  private static final class Postgresql implements Kind {
    @Override
    public Object wrap(Object bean, StoreOptions options) {
      return bean instanceof DataSource source ? AntipodePostgres.wrap(source, options) : null;
    }
  }

  private static final class Redis implements Kind {
    @Override
    public Object wrap(Object bean, StoreOptions options) {
      return bean instanceof UnifiedJedis client ? AntipodeRedis.wrap(client, options) : null;
    }
  }

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    StoreOptions options = byBean.get(name);
    if (options == null) {
      return bean;
    }
    for (Kind kind : KINDS.values()) {
      Object recording = kind.wrap(bean, options);
      if (recording != null) {
        wrapped.add(name);
        return recording;
      }
    }
    throw new ConfigurationException(
        property(options) + "=" + name + ": that bean is a " + bean.getClass().getName() + "; with what is on the class path "
            + (KINDS.isEmpty() ? "nothing can be wrapped" : "want " + String.join(" or ", KINDS.keySet()))
            + ". The shims are dev.antipode:antipode-<store>.");
  }

  private static String property(StoreOptions options) {
    return "antipode.stores." + options.name() + ".bean";
  }

  /** All beans are there, or can be made: the writes of one that was named and is not would go unrecorded. */
  @Override
  public void afterSingletonsInstantiated() {
    byBean.forEach((bean, options) -> {
      if (!beans.containsBean(bean)) {
        String near = NearestName.of(bean, candidates());
        throw new ConfigurationException(
            property(options) + "=" + bean + ": there is no such bean."
                + (near == null ? "" : " Did you mean \"" + near + "\"?"));
      }
      if (beans instanceof SingletonBeanRegistry made && made.containsSingleton(bean) && !wrapped.contains(bean)) {
        throw new ConfigurationException(
            property(options) + "=" + bean + ": that bean was made before it could be wrapped, for a BeanPostProcessor or a "
                + "BeanFactoryPostProcessor that needs it. Let that take an ObjectProvider of it.");
      }
    });
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
