package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.done;
import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.RpcClientParams;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

/** Questions by messages, and their answers (SCOPE-29), with the client's own way of asking. */
class QuestionsTest extends WithBroker {
  private static void answer(Channel channel, String queue) {
    done(() -> channel.basicConsume(queue, true, (tag, message) -> channel.basicPublish(
        "", message.getProperties().getReplyTo(),
        new AMQP.BasicProperties.Builder()
            .correlationId(message.getProperties().getCorrelationId())
            .headers(Map.of("antipode-lineage", ACL)).build(),
        message.getBody()), tag -> { }));
  }

  private static RpcClient client(Channel channel, String queue, int timeout) {
    return done(() -> new RpcClient(new RpcClientParams().channel(channel).exchange("").routingKey(queue).timeout(timeout)));
  }

  @Test
  void anAnswerJoinsTheScopeThatAsked_SCOPE_29() {
    String queue = a.queue();
    answer(a.channel(), queue);
    try (LineageScope scope = Antipode.scope(Lineage.deserialize(TEXT))) {
      RpcClient client = client(a.wrapped(), queue, 60_000);
      assertThat(done(() -> client.primitiveCall(octets("?")))).isEqualTo(octets("?"));
      assertThat(scope.lineage().serialize())
          .isEqualTo(Lineage.deserialize(TEXT).union(Lineage.deserialize(ACL)).serialize());
    }
  }

  @Test
  void aQuestionWithoutAnAnswerLeavesItsScopeIncomplete_SCOPE_29() {
    try (LineageScope scope = Antipode.scope(Lineage.deserialize(TEXT))) {
      String queue = a.queue();
      RpcClient client = client(a.wrapped(), queue, 50);
      assertThat(done(() -> {
        try {
          return client.primitiveCall(octets("?"));
        } catch (TimeoutException none) {
          return null;
        }
      })).isNull();
      assertThat(scope.lineage().serialize()).isEqualTo(Lineage.deserialize(TEXT).markedIncomplete().serialize());
    }
  }

  /** SHIM-50: what a wrapped channel says it is of opens wrapped channels. */
  @Test
  void theConnectionOfAWrappedChannelIsWrapped_SHIM_50() {
    String queue = a.queue();
    Channel other = done(() -> a.wrapped().getConnection().createChannel());
    try (LineageScope scope = Antipode.scope(Lineage.deserialize(TEXT))) {
      assertThat(headersAfter(other, queue, null)).containsEntry("antipode-lineage", TEXT);
    }
  }
}
