package dev.antipode.spring;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.propagation.Messages;
import dev.antipode.rabbitmq.MessageScopes;
import org.springframework.amqp.rabbit.core.BatchingRabbitTemplate;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.config.BeanPostProcessor;

/**
 * What a {@code RabbitTemplate} receives joins the scope that asked for it (SCOPE-29), and what one collects is incomplete, also
 * where it sends a single message later (SCOPE-30).
 */
final class ReceivingTemplates implements BeanPostProcessor {
  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (bean instanceof RabbitTemplate template
        && template.getConnectionFactory() instanceof SpringAmqp.RecordingFactory recording) {
      MessageScopes scopes = recording.antipodeScopes();
      template.addAfterReceivePostProcessors(message -> {
        LineageScope scope = LineageScope.current();
        if (scope != null) {
          scopes.join(scope, message.getMessageProperties().getHeaders());
        }
        return message;
      });
      if (template instanceof BatchingRabbitTemplate) {
        template.addBeforePublishPostProcessors(message -> {
          String text = Messages.text(Lineage.EMPTY.markedIncomplete(), LineageScope.current(), null);
          if (text != null) { // joined with that of whoever sends it
            message.getMessageProperties().setHeader(Messages.HEADER, text);
          }
          return message;
        });
      }
    }
    return bean;
  }
}
