package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import dev.antipode.Gap;
import dev.antipode.LineageScope;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The scopes that asked by a message, and are answered by another, which comes in some thread of the client's: its lineage
 * joins them before anybody has the answer (SCOPE-29). Where a queue is for answers alone, the scope is incomplete until then.
 */
final class Replies {
  private static final String DIRECT = "amq.rabbitmq.reply-to";
  private static final String TEMPORARY = "amq.gen-";
  private static final int MOST = 10_000; // those that are never answered

  private static final Map<Question, List<Asked>> OPEN = new LinkedHashMap<>(); // under its own lock

  /** Where an answer comes, and what it bears; an identifier may be none. */
  private record Question(Object place, String id) {
    static Question of(Channel channel, String queue, String id) {
      return new Question(queue.startsWith(DIRECT) ? channel : queue, id);
    }
  }

  /** One message of one scope; {@code missing} is null where nobody may wait for its answer. */
  private record Asked(LineageScope scope, Gap missing) {}

  private Replies() {}

  /** A message is sent by this plain channel: {@code sending} does it. */
  static void asking(Channel channel, AMQP.BasicProperties properties, Sending sending) throws Throwable {
    LineageScope scope = LineageScope.current();
    String queue = properties == null ? null : properties.getReplyTo();
    if (scope == null || queue == null) {
      sending.send();
      return;
    }
    boolean isWaitedFor = queue.startsWith(DIRECT) || queue.startsWith(TEMPORARY);
    Gap missing = isWaitedFor ? new Gap("unanswered", "", "a message that was sent was not answered") : null;
    Question question = Question.of(channel, queue, properties.getCorrelationId());
    Asked asked = new Asked(scope, missing);
    synchronized (OPEN) {
      OPEN.computeIfAbsent(question, first -> new ArrayList<>()).add(asked);
      if (OPEN.size() > MOST) {
        OPEN.remove(OPEN.keySet().iterator().next());
      }
    }
    sending.send();
    synchronized (OPEN) { // its own lineage had not to be marked for it
      List<Asked> open = OPEN.get(question);
      if (missing != null && open != null && open.contains(asked)) {
        scope.streaming(missing);
      }
    }
  }

  /** Sends a message. */
  @FunctionalInterface
  interface Sending {
    void send() throws Throwable;
  }

  /** A message has come to a consumer of this queue. */
  static void came(Channel channel, String queue, AMQP.BasicProperties properties, MessageScopes scopes) {
    List<Asked> answered;
    synchronized (OPEN) {
      answered = OPEN.isEmpty() ? null : OPEN.remove(Question.of(channel, queue, properties.getCorrelationId()));
    }
    if (answered != null) {
      for (Asked asked : answered) {
        if (!asked.scope.isClosed()) { // else nobody waits for it: it is a message as others are
          scopes.join(asked.scope, Marks.headersOf(properties));
        }
        if (asked.missing != null) {
          asked.scope.streamed(asked.missing);
        }
      }
    }
  }
}
