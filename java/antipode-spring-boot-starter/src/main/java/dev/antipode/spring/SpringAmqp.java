package dev.antipode.spring;

import com.rabbitmq.client.Channel;
import dev.antipode.ConfigurationException;
import dev.antipode.Delivery;
import dev.antipode.LineageScope;
import dev.antipode.StoreOptions;
import dev.antipode.rabbitmq.AntipodeRabbit;
import dev.antipode.rabbitmq.ChannelWrapping;
import dev.antipode.rabbitmq.MessageScopes;
import dev.antipode.rabbitmq.RabbitOptions;
import io.opentelemetry.context.Scope;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.aopalliance.aop.Advice;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.config.AbstractRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.Connection;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;

/**
 * Spring AMQP: what is published by a connection factory carries the scope's lineage, and the listeners of a container factory
 * run in a scope of their message. Spring hands messages to threads of its own, so the client's callbacks are not enough.
 */
final class SpringAmqp implements ClientKind {
  private static final String NO_REDELIVERY =
      "Spring AMQP acknowledges it by itself: let the listener throw what its retries and its error handler know";

  /** What a listener returns that goes on behind it; a suspending function of Kotlin's returns any object. */
  private static final List<String> FUTURES = List.of(
      "java.util.concurrent.CompletableFuture", "reactor.core.publisher.Mono");

  @Override
  public Object wrap(Object bean, StoreOptions options) {
    if (bean instanceof ConnectionFactory factory) {
      return publishing(factory, AntipodeRabbit.wrapping(untracked(options)));
    }
    if (bean instanceof AbstractRabbitListenerContainerFactory<?> factory) {
      ScopeAdvice scoped = new ScopeAdvice(AntipodeRabbit.scopes(untracked(options)));
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
  private static Object publishing(ConnectionFactory plain, ChannelWrapping wrapping) {
    return StandIns.of(plain, (method, arguments, call) -> {
      if (method.getName().equals("antipodeScopes")) {
        return wrapping.scopes();
      }
      Object made = call.run();
      return made instanceof ConnectionFactory other
          ? publishing(other, wrapping) // that of publishers
          : made instanceof Connection connection ? opening(connection, wrapping) : made;
    }, RecordingFactory.class);
  }

  private static Object opening(Connection plain, ChannelWrapping wrapping) {
    return StandIns.of(plain, (method, arguments, call) -> wrapped(call.run(), wrapping));
  }

  private static Object wrapped(Object opened, ChannelWrapping wrapping) {
    return opened instanceof Channel channel ? SpringChannels.ofBatches(wrapping.apply(channel)) : opened;
  }

  /** A connection factory whose channels carry lineages. */
  interface RecordingFactory {
    /** What takes the lineages of its messages. */
    MessageScopes antipodeScopes();
  }

  /** Round a listener: the scope of its message, or one of all messages of its batch. */
  private static final class ScopeAdvice implements MethodInterceptor {
    private final MessageScopes scopes;

    ScopeAdvice(MessageScopes scopes) {
      this.scopes = scopes;
    }

    @Override
    public Object invoke(MethodInvocation invocation) throws Throwable {
      Object[] arguments = invocation.getArguments();
      List<?> messages = arguments[1] instanceof List<?> batch ? batch : List.of(arguments[1]);
      LineageScope scope = scopes.create(headersOf(messages.get(0)), new Delivery(false, NO_REDELIVERY));
      messages.subList(1, messages.size()).forEach(other -> scopes.receive(scope, headersOf(other)));
      SpringChannels.DeliveryChannel delivery = new SpringChannels.DeliveryChannel(scope);
      boolean isLater = false;
      try (Scope current = scope.makeCurrent()) {
        if (arguments[0] instanceof Channel channel) {
          arguments[0] = delivery.over(channel);
        }
        Object result = invocation.proceed();
        isLater = messages.stream().anyMatch(ScopeAdvice::isAnsweredLater);
        return result;
      } finally {
        delivery.returned(isLater);
      }
    }

    /** Whether its listener has returned a future: Spring acknowledges, or rejects, by the channel when that is done. */
    private static boolean isAnsweredLater(Object message) {
      Method listener = message instanceof Message one ? one.getMessageProperties().getTargetMethod() : null;
      return listener != null && FUTURES.stream().anyMatch(name -> isOf(listener.getReturnType(), name));
    }

    private static boolean isOf(Class<?> type, String name) {
      return type.getName().equals(name) || type.getSuperclass() != null && isOf(type.getSuperclass(), name);
    }

    private static Map<String, Object> headersOf(Object message) {
      return message instanceof Message one ? one.getMessageProperties().getHeaders() : Map.of();
    }
  }
}
