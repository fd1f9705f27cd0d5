package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.done;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.RpcClientParams;
import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.ScopeKind;
import dev.antipode.Settings;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Questions by messages, and their answers (SCOPE-29), with the client's own way of asking. */
class QuestionsTest extends WithBroker {
  private final List<LineageScope> scopes = new ArrayList<>();

  @AfterEach
  void stop() {
    scopes.forEach(LineageScope::stop);
  }

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

  private static AMQP.BasicProperties asking(String queue, String id) {
    return new AMQP.BasicProperties.Builder().replyTo(queue).correlationId(id).build();
  }

  private static void ask(Channel channel, String queue, String id) {
    done(() -> {
      channel.basicPublish("", "nobody", asking(queue, id), octets("?"));
      return null;
    });
  }

  private static void askIn(LineageScope scope, Channel channel, String queue, String id) {
    try (Scope in = scope.makeCurrent()) {
      ask(channel, queue, id);
    }
  }

  private LineageScope scope() {
    LineageScope scope = LineageScope.create(Lineage.EMPTY, ScopeKind.REQUEST);
    scopes.add(scope);
    return scope;
  }

  /** A queue of this process that is for answers, and what has come of it. */
  private String answers(String name, BlockingQueue<String> seen) {
    return done(() -> {
      String queue = a.channel().queueDeclare(name, false, false, true, null).getQueue();
      a.wrapped().basicConsume(queue, true, (tag, message) -> seen.add(queue), tag -> { });
      return queue;
    });
  }

  private void answered(String queue, String id, String lineage, BlockingQueue<String> seen) throws InterruptedException {
    a.publish("", queue, new AMQP.BasicProperties.Builder()
        .correlationId(id).headers(Map.of("antipode-lineage", lineage)).build(), "!");
    assertThat(seen.poll(60, TimeUnit.SECONDS)).isEqualTo(queue);
  }

  /** By a queue of the broker's name, which is for answers alone, and by one that others may use, too. */
  @ParameterizedTest
  @ValueSource(strings = {"", "named-for-several"})
  void eachAnswerJoinsEachOpenScopeThatMayHaveAskedForIt_SCOPE_29(String name) throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    String queue = answers(name, seen);
    LineageScope first = scope();
    LineageScope second = scope();
    LineageScope ended = scope();
    askIn(first, a.wrapped(), queue, "same");
    askIn(second, a.wrapped(), queue, "same");
    askIn(ended, a.wrapped(), queue, "other");
    ended.stop();
    answered(queue, "other", TEXT, seen);
    answered(queue, "same", TEXT, seen);
    Lineage one = Lineage.deserialize(TEXT);
    assertThat(first.lineage().serialize()).isEqualTo(TEXT);
    assertThat(second.lineage().serialize()).isEqualTo((name.isEmpty() ? one.markedIncomplete() : one).serialize());
    answered(queue, "same", ACL, seen);
    String both = one.union(Lineage.deserialize(ACL)).serialize();
    assertThat(first.lineage().serialize()).isEqualTo(both);
    assertThat(second.lineage().serialize()).isEqualTo(both);
    assertThat(ended.lineage().hasContent()).isEqualTo(name.isEmpty()); // it ended without its answer
  }

  /** Nobody can tell which scope a message without an identifier is for: none gets it, and those that asked are incomplete. */
  @Test
  void anAnswerThatNobodyCanTellJoinsNoScope_SCOPE_29() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    String queue = answers("named-without-identifiers", seen);
    LineageScope scope = scope();
    LineageScope other = scope();
    askIn(scope, a.wrapped(), queue, null);
    askIn(scope, a.wrapped(), queue, null);
    askIn(other, a.wrapped(), queue, "42");
    answered(queue, null, TEXT, seen);
    assertThat(scope.lineage().serialize()).isEqualTo(Lineage.EMPTY.markedIncomplete().serialize());
    assertThat(scope.gaps()).hasSize(1);
    assertThat(other.lineage().hasContent()).isFalse();
    LineageScope sender = scope(); // the answer goes to another process
    askIn(sender, a.wrapped(), "of-another-process", null);
    assertThat(sender.lineage().hasContent()).isFalse();
    LineageScope early = scope(); // it asks, and consumes only then
    askIn(early, a.wrapped(), "named-and-consumed-later", null);
    assertThat(early.lineage().hasContent()).isFalse();
    answered(answers("named-and-consumed-later", seen), null, TEXT, seen);
    assertThat(early.lineage().serialize()).isEqualTo(Lineage.EMPTY.markedIncomplete().serialize());
    assertThat(sender.lineage().hasContent()).isFalse();
  }

  /** A queue for the answers of one scope at a time needs no identifiers; where two wait there, one cannot be told. */
  @Test
  void aQueueForAnswersNeedsNoIdentifierForOneScope_SCOPE_29() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    String queue = answers("", seen);
    LineageScope first = scope();
    LineageScope second = scope();
    askIn(first, a.wrapped(), queue, null);
    assertThat(first.lineage().isComplete()).isFalse();
    answered(queue, null, TEXT, seen);
    askIn(second, a.wrapped(), queue, null);
    answered(queue, null, ACL, seen);
    assertThat(first.lineage().serialize()).isEqualTo(TEXT);
    assertThat(second.lineage().serialize()).isEqualTo(ACL);
    askIn(second, a.wrapped(), queue, null);
    askIn(first, a.wrapped(), queue, null);
    answered(queue, null, TEXT, seen);
    answered(queue, null, TEXT, seen);
    assertThat(first.lineage().isComplete()).isFalse();
    assertThat(second.lineage().serialize())
        .isEqualTo(Lineage.deserialize(TEXT).union(Lineage.deserialize(ACL)).serialize());
  }

  /** Who passes a question on has no answer; who consumes a queue that it asked by before has one (SCOPE-29). */
  @Test
  void onlyWhoMayHaveTheAnswerWaitsForIt_SCOPE_29() {
    LineageScope scope = scope();
    askIn(scope, a.wrapped(), "amq.rabbitmq.reply-to.g1h2AA5yZXBseUAyNDYwNjMwMw.x", "42");
    askIn(scope, a.wrapped(), "amq.gen-of-another-process", "42");
    assertThat(scope.lineage().hasContent()).isFalse();
    String queue = done(() -> a.channel().queueDeclare("", false, false, true, null).getQueue());
    askIn(scope, a.wrapped(), queue, "42");
    done(() -> a.wrapped().basicConsume(queue, true, (tag, message) -> { }, tag -> { }));
    assertThat(scope.lineage().serialize()).isEqualTo(Lineage.EMPTY.markedIncomplete().serialize());
  }

  @Test
  void withModeOffAnAnswerAddsNothing_PROP_26() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    String queue = answers("", seen);
    Antipode.configure(Settings.defaults().mode(Mode.OFF));
    LineageScope scope = scope();
    askIn(scope, a.wrapped(), queue, "42");
    assertThat(scope.lineage().hasContent()).isFalse();
    answered(queue, "42", TEXT, seen);
    assertThat(scope.lineage().hasContent()).isFalse();
  }

  /** What is forgotten for want of room is incomplete: its answer will join nothing. */
  @Test
  void tooManyQuestionsLeaveTheEldestScopeIncomplete_SCOPE_29() {
    LineageScope eldest = scope();
    LineageScope later = scope();
    Channel channel = a.wrapped();
    askIn(eldest, channel, "of-another-process", "eldest");
    askIn(later, channel, "of-another-process", "later");
    assertThat(eldest.lineage().hasContent()).isFalse();
    for (int each = 0; each < Replies.MOST; each++) { // of one question, too, the sum counts
      askIn(later, channel, "of-another-process", "x" + each % 10);
    }
    assertThat(eldest.lineage().serialize()).isEqualTo(Lineage.EMPTY.markedIncomplete().serialize());
  }

  /** PROP-27: what never left is not waited for; what may have left is missing. */
  @Test
  void aMessageThatCouldNotBeSentIsNoQuestion_SCOPE_29() throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    String queue = answers("", seen);
    Channel channel = a.wrapped();
    done(() -> {
      channel.close();
      return null;
    });
    LineageScope scope = scope();
    try (Scope in = scope.makeCurrent()) {
      assertThatThrownBy(() -> channel.basicPublish("", "nobody", asking(queue, "42"), octets("?")))
          .isInstanceOf(AlreadyClosedException.class);
      answered(queue, "42", TEXT, seen);
      assertThat(scope.lineage().hasContent()).isFalse();
      assertThatThrownBy(() -> Replies.asking(a.channel(), asking(queue, "43"), () -> {
        throw new IOException("it broke while it was sent");
      })).isInstanceOf(IOException.class);
      assertThat(scope.lineage().serialize()).isEqualTo(Lineage.EMPTY.markedIncomplete().serialize());
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
