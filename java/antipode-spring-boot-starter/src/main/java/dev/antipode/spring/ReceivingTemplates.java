package dev.antipode.spring;

import dev.antipode.LineageScope;
import dev.antipode.rabbitmq.MessageScopes;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.config.BeanPostProcessor;

/** What a {@code RabbitTemplate} receives joins the scope that asked for it (SCOPE-42). */
final class ReceivingTemplates implements BeanPostProcessor {
  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (bean instanceof RabbitTemplate template && template.getConnectionFactory() instanceof SpringAmqp.Recording recording) {
      MessageScopes scopes = recording.antipodeScopes();
      template.addAfterReceivePostProcessors(message -> {
        LineageScope scope = LineageScope.current();
        if (scope != null) {
          scopes.join(scope, message.getMessageProperties().getHeaders());
        }
        return message;
      });
    }
    return bean;
  }
}
