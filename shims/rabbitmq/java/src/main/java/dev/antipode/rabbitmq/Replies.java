package dev.antipode.rabbitmq;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import dev.antipode.Gap;
import dev.antipode.LineageScope;
import dev.antipode.PendingWriteException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/**
 * The scopes that asked by a message, and are answered by another, which comes in some thread of the client's: its lineage
 * joins them before anybody has the answer (SCOPE-29). Where a queue is for answers alone, the scope is incomplete until
 * then; where nobody can tell which message is the answer, it stays so.
 */
final class Replies {
  static final int MOST = 10_000; // messages that were sent and whose scope is open; and queues

  private static final String DIRECT = "amq.rabbitmq.reply-to"; // as who asks has it: who answers gets a longer one
  private static final String TEMPORARY = "amq.gen-";
  private static final int FEW = 100;

  /** One for all: a scope has it once, however often it asks so. */
  private static final Gap UNTOLD =
      new Gap("unanswered", "", "a message was sent to be answered, and nobody can tell which one is its answer");

  // Under the lock of the first:
  private static final Map<Question, List<OpenRequest>> OPEN = new LinkedHashMap<>();
  private static final Map<String, String> CONSUMED = new LinkedHashMap<>(16, 0.75f, true); // queues of this process
  private static int size; // of all lists of questions
  private static int due = FEW; // at that size it is looked which scopes are closed

  /** Where an answer comes, and what it bears: null for no identifier; whether a message is known as the answer by that. */
  private record Question(Object place, String id, boolean isTellable) {
    static Question of(Channel channel, String queue, String id) {
      return new Question(queue.equals(DIRECT) ? channel : queue, id, id != null || isForAnswers(queue));
    }
  }

  /** One message of one scope. */
  private static final class OpenRequest {
    private final LineageScope scope;
    private final Gap missing = new Gap("unanswered", "", "a message that was sent was not answered");
    private boolean isAnswered; // under the lock of OPEN

    OpenRequest(LineageScope scope) {
      this.scope = scope;
    }

    /** Marks the scope until the answer has come; under the lock of OPEN. */
    void await() {
      if (!isAnswered) {
        scope.streaming(missing);
      }
    }
  }

  private Replies() {}

  /** Sends a message. */
  @FunctionalInterface
  interface MessageSender {
    void send() throws Throwable;
  }

  /** A message is sent by this plain channel: {@code sending} does it. The scope is marked behind that, not before. */
  static void asking(Channel channel, AMQP.BasicProperties properties, MessageSender sending) throws Throwable {
    LineageScope scope = LineageScope.current();
    String queue = properties == null ? null : properties.getReplyTo();
    if (scope == null || queue == null) {
      sending.send();
      return;
    }
    Question question = Question.of(channel, queue, properties.getCorrelationId());
    OpenRequest asked = new OpenRequest(scope);
    if (!isKept(question, asked)) {
      sending.send();
      scope.streaming(UNTOLD);
      return;
    }
    try {
      sending.send();
    } catch (Throwable error) {
      synchronized (OPEN) {
        forget(question, each -> each == asked);
      }
      if (mayHaveLeft(error)) {
        scope.streaming(UNTOLD);
      }
      throw error;
    }
    synchronized (OPEN) {
      if (!isConsumed(queue)) { // another process may, who has the answer
        return;
      }
      if (!question.isTellable) {
        forget(question, each -> each == asked);
        scope.streaming(UNTOLD);
      } else if (isForAnswers(queue)) {
        asked.await();
      }
    }
  }

  /** As for a call (PROP-27): what never left is not answered. */
  private static boolean mayHaveLeft(Throwable error) {
    return !(error instanceof AlreadyClosedException
        || error instanceof IllegalArgumentException
        || error instanceof PendingWriteException);
  }

  private static boolean isForAnswers(String queue) {
    return queue.equals(DIRECT) || queue.startsWith(TEMPORARY);
  }

  private static boolean isConsumed(String queue) {
    return queue.equals(DIRECT) || CONSUMED.get(queue) != null;
  }

  /** Keeps a question unless its answer has no identifier, and may be that of another scope which waits there, too. */
  private static boolean isKept(Question question, OpenRequest asked) {
    synchronized (OPEN) {
      if (question.id == null) {
        forget(question, each -> each.isAnswered || each.scope.isClosed());
        if (question.isTellable && OPEN.getOrDefault(question, List.of()).stream().anyMatch(each -> each.scope != asked.scope)) {
          return false;
        }
      }
      OPEN.computeIfAbsent(question, first -> new ArrayList<>()).add(asked);
      size++;
      bound();
      return true;
    }
  }

  private static void forget(Question question, Predicate<OpenRequest> which) {
    List<OpenRequest> all = OPEN.get(question);
    if (all != null) {
      int before = all.size();
      all.removeIf(which);
      size -= before - all.size();
      if (all.isEmpty()) {
        OPEN.remove(question);
      }
    }
  }

  /** Forgets those of closed scopes; where there are too many of open ones, the eldest, and leaves these incomplete. */
  private static void bound() {
    if (size <= due) {
      return;
    }
    OPEN.values().forEach(all -> all.removeIf(asked -> asked.scope.isClosed()));
    OPEN.values().removeIf(List::isEmpty);
    size = OPEN.values().stream().mapToInt(List::size).sum();
    if (size > MOST) {
      Iterator<List<OpenRequest>> eldest = OPEN.values().iterator();
      while (size > MOST - MOST / 10) { // not one by one: each time all are looked at
        List<OpenRequest> all = eldest.next();
        all.forEach(asked -> asked.scope.streaming(UNTOLD));
        size -= all.size();
        eldest.remove();
      }
    }
    due = Math.min(MOST, Math.max(FEW, 2 * size));
  }

  /** This process consumes a queue from now on; a question may have been sent before. */
  static void consuming(String queue) {
    if (queue == null) { // the client refuses it
      return;
    }
    synchronized (OPEN) {
      CONSUMED.put(queue, queue);
      if (CONSUMED.size() > MOST) {
        CONSUMED.remove(CONSUMED.keySet().iterator().next());
      }
      if (queue.startsWith(TEMPORARY)) {
        OPEN.forEach((question, all) -> {
          if (question.place.equals(queue)) {
            all.forEach(OpenRequest::await);
          }
        });
      }
      Question untellable = new Question(queue, null, false);
      OPEN.getOrDefault(untellable, List.of()).forEach(asked -> asked.scope.streaming(UNTOLD));
      forget(untellable, asked -> true);
    }
  }

  /** A message has come to a consumer of this queue: each open scope that asked so may be meant, the first before all. */
  static void came(Channel channel, String queue, AMQP.BasicProperties properties, MessageScopes scopes) {
    Question question = Question.of(channel, queue, properties.getCorrelationId());
    List<OpenRequest> all;
    synchronized (OPEN) {
      all = List.copyOf(OPEN.getOrDefault(question, List.of()));
    }
    all.stream().map(asked -> asked.scope).distinct()
        .filter(scope -> !scope.isClosed()) // else nobody waits for it: it is a message as others are
        .forEach(scope -> scopes.join(scope, Marks.headersOf(properties)));
    synchronized (OPEN) {
      all.stream().filter(asked -> !asked.isAnswered).findFirst().ifPresent(asked -> {
        asked.isAnswered = true;
        if (!asked.scope.isClosed()) { // else it ended without
          asked.scope.streamed(asked.missing);
        }
      });
    }
  }
}
