package dev.antipode.spring;

import dev.antipode.Antipode;
import dev.antipode.grpc.AntipodeGrpc;
import dev.antipode.http.AntipodeClientInterceptor;
import dev.antipode.http.AntipodeFilter;
import dev.antipode.observer.TelemetryTarget;
import dev.antipode.postgresql.AntipodePostgres;
import dev.antipode.rabbitmq.AntipodeRabbit;
import io.grpc.ClientInterceptor;
import io.grpc.ServerInterceptor;
import io.opentelemetry.api.OpenTelemetry;
import jakarta.persistence.EntityManagerFactory;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.apache.catalina.Valve;
import org.apache.catalina.startup.Tomcat;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.autoconfigure.task.TaskExecutionAutoConfiguration;
import org.springframework.boot.http.client.ClientHttpRequestFactoryBuilder;
import org.springframework.boot.task.SimpleAsyncTaskExecutorCustomizer;
import org.springframework.boot.task.SimpleAsyncTaskSchedulerCustomizer;
import org.springframework.boot.task.ThreadPoolTaskExecutorCustomizer;
import org.springframework.boot.task.ThreadPoolTaskSchedulerCustomizer;
import org.springframework.boot.web.client.RestClientCustomizer;
import org.springframework.boot.web.client.RestTemplateCustomizer;
import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.PriorityOrdered;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.task.TaskDecorator;
import org.springframework.core.task.support.CompositeTaskDecorator;
import org.springframework.orm.jpa.EntityManagerHolder;
import org.springframework.web.client.RestClient;

/**
 * Lineages in a Spring Boot application, without code: settings from properties, a scope for every request, clients that carry
 * it on, executors that keep it, and stores that a property names. {@code antipode.enabled=false} switches all of it off.
 */
@AutoConfiguration(before = TaskExecutionAutoConfiguration.class)
@ConditionalOnProperty(name = "antipode.enabled", matchIfMissing = true)
public class AntipodeAutoConfiguration {
  /** A configuration. */
  public AntipodeAutoConfiguration() {}

  /** The properties, put in force before any other bean is made. */
  @Bean
  @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
  static SpringSettings antipodeSettings(ConfigurableEnvironment environment) {
    return SpringSettings.putInForce(environment);
  }

  /** Wraps the beans that {@code antipode.stores} names. */
  @Bean
  @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
  static StoreBeans antipodeStoreBeans(SpringSettings settings) {
    return new StoreBeans(settings.stores());
  }

  /** Spans and metrics go where the application's own OpenTelemetry takes them, which is seldom the global one. */
  @Bean
  SmartInitializingSingleton antipodeTelemetry(ObjectProvider<OpenTelemetry> openTelemetry) {
    return () -> openTelemetry.ifUnique(TelemetryTarget::use);
  }

  /** A scope for every request of a servlet container. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
  @ConditionalOnClass({AntipodeFilter.class, Filter.class})
  static class Requests {
    @Bean
    @ConditionalOnMissingBean(value = AntipodeFilter.class, parameterizedContainer = FilterRegistrationBean.class)
    FilterRegistrationBean<AntipodeFilter> antipodeFilter(SpringSettings settings) {
      FilterRegistrationBean<AntipodeFilter> filter = new First(new AntipodeFilter());
      filter.setName("antipode");
      filter.setOrder(Ordered.HIGHEST_PRECEDENCE);
      filter.setDispatcherTypes(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC, DispatcherType.ERROR));
      return filter;
    }
  }

  /** Before all that are ordered, with the highest precedence too: Spring's {@code ForwardedHeaderFilter} has that. */
  private static final class First extends FilterRegistrationBean<AntipodeFilter> implements PriorityOrdered {
    First(AntipodeFilter filter) {
      super(filter);
    }
  }

  /** Tomcat's {@code RemoteIpValve}, of {@code server.forward-headers-strategy=native}, takes out the headers that it reads. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({AntipodeFilter.class, Tomcat.class, TomcatServletWebServerFactory.class})
  static class TomcatsCallers {
    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    WebServerFactoryCustomizer<TomcatServletWebServerFactory> antipodeReceivedCaller() {
      return factory -> {
        List<Valve> valves = new ArrayList<>(factory.getEngineValves());
        valves.add(0, new ReceivedCaller());
        factory.setEngineValves(valves);
      };
    }
  }

  /** Clients that are built by the builders of Spring Boot. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({AntipodeClientInterceptor.class, RestClient.class})
  static class Clients {
    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    RestTemplateCustomizer antipodeRestTemplates(SpringSettings settings) {
      return template -> template.getInterceptors().add(new AntipodeClientInterceptor());
    }

    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    RestClientCustomizer antipodeRestClients(SpringSettings settings) {
      return builder -> builder.requestInterceptor(new AntipodeClientInterceptor());
    }
  }

  /** Redirects that those clients follow: Spring Boot 3.4 has a builder of all their request factories. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({AntipodeClientInterceptor.class, RestClient.class, ClientHttpRequestFactoryBuilder.class})
  static class Redirects {
    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static JudgedFactories antipodeJudgedFactories() {
      return new JudgedFactories();
    }
  }

  /** {@code @Async}, and all else that runs on the executors that Spring Boot makes. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(ThreadPoolTaskExecutorCustomizer.class)
  static class Executors {
    private static final TaskDecorator OURS = Antipode::carry;

    /** For executors of the application's own, too. */
    @Bean
    @ConditionalOnMissingBean(TaskDecorator.class)
    TaskDecorator antipodeTaskDecorator() {
      return OURS;
    }

    @Bean
    ThreadPoolTaskExecutorCustomizer antipodeThreadPools(ObjectProvider<TaskDecorator> present) {
      return executor -> executor.setTaskDecorator(keepingTheScope(present));
    }

    @Bean
    SimpleAsyncTaskExecutorCustomizer antipodeTaskExecutors(ObjectProvider<TaskDecorator> present) {
      return executor -> executor.setTaskDecorator(keepingTheScope(present));
    }

    /** Spring Boot takes one decorator alone: the application's stays, inside of ours. */
    private static TaskDecorator keepingTheScope(ObjectProvider<TaskDecorator> present) {
      TaskDecorator own = present.getIfUnique();
      return own == null || own == OURS ? OURS : new CompositeTaskDecorator(List.of(own, OURS));
    }
  }

  /** {@code @Scheduled}, and all else that runs by the scheduler that Spring Boot makes. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(ThreadPoolTaskSchedulerCustomizer.class)
  static class Schedulers {
    @Bean
    ThreadPoolTaskSchedulerCustomizer antipodeThreadPoolSchedulers() {
      return scheduler -> scheduler.setTaskDecorator(ScheduledTask::new);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static TriggeredTasks antipodeTriggeredTasks() {
      return new TriggeredTasks();
    }

    @Bean
    SimpleAsyncTaskSchedulerCustomizer antipodeTaskSchedulers() {
      return scheduler -> scheduler.setTaskDecorator(ScheduledTask::new);
    }
  }

  /** What JPA is about to write. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({EntityManagerHolder.class, EntityManagerFactory.class, AntipodePostgres.class})
  static class Mappers {
    @Bean
    JpaChanges antipodeJpaChanges() {
      return new JpaChanges();
    }
  }

  /** What a {@code RabbitTemplate} receives. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({RabbitTemplate.class, AntipodeRabbit.class})
  static class Templates {
    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static ReceivingTemplates antipodeReceivingTemplates() {
      return new ReceivingTemplates();
    }
  }

  /** For those who build servers and channels: {@code builder.intercept(interceptor)}. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({AntipodeGrpc.class, ServerInterceptor.class})
  static class GrpcCalls {
    @Bean
    @Order(Ordered.HIGHEST_PRECEDENCE)
    @ConditionalOnMissingBean(name = "antipodeGrpcServerInterceptor")
    ServerInterceptor antipodeGrpcServerInterceptor(SpringSettings settings) {
      return AntipodeGrpc.serverInterceptor();
    }

    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    @ConditionalOnMissingBean(name = "antipodeGrpcClientInterceptor")
    ClientInterceptor antipodeGrpcClientInterceptor(SpringSettings settings) {
      return AntipodeGrpc.clientInterceptor();
    }
  }
}
