package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.Channel;
import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Shims;
import dev.antipode.testing.AntipodeIsolated;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What happens while a message is being sent: what threads and shutdowns do between two of the client's steps (SCOPE-17). */
@ExtendWith(AntipodeIsolated.class)
class InterleavedTest {
  private final RabbitOptions options = RabbitOptions.named("notifications").track(true);
  private final AtomicLong next = new AtomicLong();
  private final List<String> sent = new CopyOnWriteArrayList<>();
  private final Channel plain = (Channel) Proxy.newProxyInstance(
      Channel.class.getClassLoader(),
      new Class<?>[] {Channel.class},
      (proxy, method, args) -> method.getName().equals("getNextPublishSeqNo") ? next.get() : null);
  private final RegisteredStore store = Shims.join(options.store(), RabbitShim::new);
  private final Confirms confirms = new Confirms(plain);
  private final ChannelPublisher publishing = new ChannelPublisher(store, options, new Room(() -> 0), confirms);

  /** The channel gives the message its number as it sends it. */
  private void send(String message) {
    sent.add(message + " " + next.getAndIncrement());
  }

  private void publish(String message) {
    try {
      publishing.publish("", "queue", null, properties -> send(message));
    } catch (Throwable error) {
      sent.add(error.toString());
    }
  }

  private static boolean isUnknown(LineageScope scope) {
    return scope.pending().size() == 1 && scope.pending().get(0).isUnknown();
  }

  /** Else the confirmation of one would be taken for the other's. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aMessageOutsideOfAnyScopeDoesNotTakeTheNumberOfOneInsideOfOne(boolean isOff) throws Throwable {
    next.set(7);
    try (LineageScope scope = Antipode.scope()) {
      publishing.publish("", "queue", null, properties -> {
        if (isOff) {
          Antipode.configure(Settings.defaults().mode(Mode.OFF));
        }
        Thread other = new Thread(() -> publish("outside"));
        other.start();
        until(() -> !other.isAlive() || other.getState() == Thread.State.WAITING, "it waits");
        send("inside");
      });
      until(() -> sent.size() == 2, "both");
      assertThat(sent).containsExactly("inside 7", "outside 8");
      confirms.handleNack(7, false);
      confirms.handleAck(8, false);
      assertThat(isUnknown(scope)).isTrue();
      assertThat(scope.lineage().isEmpty()).isTrue();
    }
  }

  /** The broker has dropped it, or has it in a transaction that was begun anew: no later commit records it. */
  @Test
  void aChannelThatEndsWhileATransactionsMessageIsSent() throws Throwable {
    publishing.selected();
    try (LineageScope scope = Antipode.scope()) {
      publishing.publish("", "queue", null, properties -> publishing.ended());
      publish("later");
      publishing.transaction().commit(() -> null);
      assertThat(isUnknown(scope)).isTrue();
      assertThat(scope.lineage().ofStore("notifications")).as("the later one").hasSize(1);
    }
  }
}
