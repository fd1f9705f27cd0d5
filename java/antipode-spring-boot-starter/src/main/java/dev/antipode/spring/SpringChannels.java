package dev.antipode.spring;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.ScopeKind;
import io.opentelemetry.context.Scope;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Set;
import org.springframework.amqp.core.MessageProperties;

/** Channels as Spring AMQP uses them: in threads that are not those of the work. */
final class SpringChannels {
  private static final Set<String> ENDS = Set.of("basicAck", "basicNack", "basicReject");

  private SpringChannels() {}

  /**
   * A channel of which it is seen what publishes a batch: that is whoever sends its last message, or a timer. The others'
   * lineages are not known by then, so it is incomplete (SCOPE-30).
   */
  static Channel ofBatches(Channel plain) {
    return (Channel) StandIns.of(plain, (method, arguments, call) -> {
      if (!method.getName().equals("basicPublish") || !isBatch(arguments)) {
        return call.run();
      }
      LineageScope sender = LineageScope.current();
      try (LineageScope batch =
          LineageScope.open(sender == null ? Lineage.EMPTY : sender.outgoing(), ScopeKind.DETACHED)) {
        batch.markIncomplete("pending", "Spring AMQP collected its messages from several senders");
        return call.run();
      }
    });
  }

  private static boolean isBatch(Object[] arguments) {
    return Arrays.stream(arguments).anyMatch(each -> each instanceof AMQP.BasicProperties properties
        && properties.getHeaders() != null
        && properties.getHeaders().containsKey(MessageProperties.SPRING_BATCH_FORMAT));
  }

  /**
   * The channel that a listener is given with its message: what is published by it carries the message's scope, also by the
   * thread that completes a future (SCOPE-28); then the acknowledgement ends the scope.
   */
  static final class DeliveryChannel implements StandIns.Handler {
    private final LineageScope scope;
    private boolean isSettled; // under the lock of this
    private boolean goesOn; // likewise

    DeliveryChannel(LineageScope scope) {
      this.scope = scope;
    }

    Channel over(Channel plain) {
      return (Channel) StandIns.of(plain, this);
    }

    /** The listener has returned; with {@code isLater} Spring settles the message when a future is done. */
    synchronized void returned(boolean isLater) {
      goesOn = isLater;
      if (isSettled || !isLater) {
        scope.stop();
      }
    }

    private synchronized void settled() {
      isSettled = true;
      if (goesOn) {
        scope.stop();
      }
    }

    @Override
    public Object handle(Method method, Object[] arguments, StandIns.Call call) throws Throwable {
      if (method.getName().equals("basicPublish")) {
        return inScope(call);
      }
      Object result = call.run();
      if (ENDS.contains(method.getName())) {
        settled();
      }
      return result;
    }

    private Object inScope(StandIns.Call call) throws Throwable {
      LineageScope here = LineageScope.current();
      if (here == null || here.isClosed() || here == scope) {
        try (Scope current = scope.makeCurrent()) {
          return call.run();
        }
      }
      try (LineageScope both = LineageScope.open(scope.outgoing().union(here.outgoing()), ScopeKind.DETACHED)) {
        return call.run();
      }
    }
  }
}
