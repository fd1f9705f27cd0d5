package dev.antipode.spring;

import com.rabbitmq.client.Channel;
import dev.antipode.ConfigurationException;
import dev.antipode.Delivery;
import dev.antipode.LineageScope;
import dev.antipode.StoreOptions;
import dev.antipode.rabbitmq.AntipodeRabbit;
import dev.antipode.rabbitmq.MessageScopes;
import dev.antipode.rabbitmq.RabbitOptions;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.aopalliance.aop.Advice;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.config.AbstractRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.Connection;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.util.ClassUtils;

/**
 * Spring AMQP: what is published by a connection factory carries the scope's lineage, and the listeners of a container factory
 * run in a scope of their message. Spring hands messages to threads of its own, so the client's callbacks are not enough.
 */
final class SpringAmqp implements ClientKind {
  private static final String NO_REDELIVERY =
      "Spring AMQP acknowledges it by itself: let the listener throw what its retries and its error handler know";

  @Override
  public Object wrap(Object bean, StoreOptions options) {
    if (bean instanceof ConnectionFactory factory) {
      return publishing(factory, AntipodeRabbit.wrapping(untracked(options)));
    }
    if (bean instanceof AbstractRabbitListenerContainerFactory<?> factory) {
      InScope scoped = new InScope(AntipodeRabbit.scopes(untracked(options)));
      List<Advice> chain = new ArrayList<>(List.of(scoped)); // retries are inside
      chain.addAll(factory.getAdviceChain() == null ? List.of() : Arrays.asList(factory.getAdviceChain()));
      factory.setAdviceChain(chain.toArray(new Advice[0]));
      return factory;
    }
    return null;
  }

  private static RabbitOptions untracked(StoreOptions options) {
    if (options.extra("track") != null) {
      throw new ConfigurationException(
          "AP501",
          "antipode.stores." + options.name() + ".extra.track: messages of Spring AMQP are not tracked. Name a bean of "
              + "com.rabbitmq.client.Connection for those that are waited for");
    }
    return RabbitOptions.of(options);
  }

  /** Spring opens channels all the time: a template one for each message, out of a cache or not. */
  private static Object publishing(ConnectionFactory plain, UnaryOperator<Channel> wrapping) {
    return standIn(plain, made -> made instanceof ConnectionFactory other
        ? publishing(other, wrapping) // that of publishers
        : made instanceof Connection connection ? standIn(connection, opened -> wrapped(opened, wrapping)) : made);
  }

  private static Object wrapped(Object opened, UnaryOperator<Channel> wrapping) {
    return opened instanceof Channel channel ? wrapping.apply(channel) : opened;
  }

  /** Stands for an object, with all of its public interfaces; what its methods return goes through {@code after}. */
  private static Object standIn(Object plain, UnaryOperator<Object> after) {
    Class<?>[] interfaces = Arrays.stream(ClassUtils.getAllInterfaces(plain))
        .filter(each -> Modifier.isPublic(each.getModifiers()))
        .toArray(Class<?>[]::new);
    return Proxy.newProxyInstance(plain.getClass().getClassLoader(), interfaces, (proxy, method, args) -> {
      if (method.getName().equals("equals") && args != null && args.length == 1) {
        return proxy == args[0];
      }
      try {
        return after.apply(method.invoke(plain, args));
      } catch (InvocationTargetException error) {
        throw error.getCause();
      }
    });
  }

  /** Round a listener: the scope of its message, or one of all messages of its batch. */
  private static final class InScope implements MethodInterceptor {
    private final MessageScopes scopes;

    InScope(MessageScopes scopes) {
      this.scopes = scopes;
    }

    @Override
    public Object invoke(MethodInvocation invocation) throws Throwable {
      Object data = invocation.getArguments()[1];
      List<?> messages = data instanceof List<?> batch ? batch : List.of(data);
      try (LineageScope scope = scopes.open(headersOf(messages.get(0)), new Delivery(false, NO_REDELIVERY))) {
        messages.subList(1, messages.size()).forEach(other -> scopes.receive(scope, headersOf(other)));
        return invocation.proceed();
      }
    }

    private static Map<String, Object> headersOf(Object message) {
      return message instanceof Message one ? one.getMessageProperties().getHeaders() : Map.of();
    }
  }
}
