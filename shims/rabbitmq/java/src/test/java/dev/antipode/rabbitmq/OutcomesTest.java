package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.done;
import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import dev.antipode.Antipode;
import dev.antipode.LineageScope;
import dev.antipode.OnPending;
import dev.antipode.Opaque;
import dev.antipode.Settings;
import dev.antipode.WriteId;
import dev.antipode.propagation.Messages;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What became of a tracked message: confirmed, refused, returned, committed, or nobody knows (SCOPE-14, SCOPE-17). */
class OutcomesTest extends WithBroker {
  private static final long CONFIRM_MILLIS = 20_000;

  private Channel tracking() {
    return a.wrapped(options().track(true));
  }

  private Channel confirming() {
    Channel channel = tracking();
    done(channel::confirmSelect);
    return channel;
  }

  private static void publish(Channel channel, String exchange, String routingKey, boolean mandatory) {
    done(() -> {
      channel.basicPublish(exchange, routingKey, mandatory, null, octets("body"));
      return null;
    });
  }

  private static boolean isUnknown(LineageScope scope) {
    return scope.pending().size() == 1 && scope.pending().get(0).isUnknown();
  }

  @Test
  void withoutConfirmationsAMessageIsRecordedWhenItIsSent_SHIM_17() throws IOException {
    Channel channel = tracking();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      channel.basicPublish("", queue, headers(Map.of("mine", 1)), octets("body"));
      assertThat(scope.pending()).isEmpty();
      WriteId id = scope.lineage().ofStore(STORE).get(0);
      assertThat(id.key().text()).isEqualTo(queue);
      AMQP.BasicProperties received = a.get(queue).getProps();
      assertThat(id.version()).isEqualTo(new Opaque(received.getMessageId()));
      assertThat(received.getMessageId()).matches("[0-9a-f]{32}");
      assertThat(headersOf(received))
          .as("the message depends on itself")
          .isEqualTo(Map.of("mine", 1, Messages.HEADER, scope.lineage().serialize()));
    }
  }

  @Test
  void itIsPendingUntilItIsConfirmed_SCOPE_14() throws Exception {
    Link link = a.link();
    Channel channel = AntipodeRabbit.wrap(a.channel(a.url(link)), options().track(true));
    channel.confirmSelect();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      link.silence();
      publish(channel, "", queue, false);
      assertThat(scope.pending()).hasSize(1);
      assertThat(scope.lineage().isEmpty()).isTrue();
      assertThat(scope.lineage().incomplete()).isEqualTo(Set.of(STORE));
      Antipode.configure(Settings.defaults().onPending(OnPending.RAISE));
      assertThat(Antipode.serialize()).as("no transaction of this task is open").isEqualTo("1~_.i." + STORE);
      link.heal();
      assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isTrue();
      assertThat(scope.pending()).as("the client's own wait is enough").isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  /** What left the scope before was marked, and so is the response's copy. */
  @Test
  void oneThatIsConfirmedAfterItsScopeHasEndedIsDroppedAndSaidSo_SCOPE_4() throws Exception {
    Link link = a.link();
    Channel channel = AntipodeRabbit.wrap(a.channel(a.url(link)), options().track(true));
    channel.confirmSelect();
    LineageScope scope = Antipode.scope();
    try (scope) {
      link.silence();
      publish(channel, "", a.queue(), false);
      assertThat(scope.lineage().incomplete()).isEqualTo(Set.of(STORE));
    }
    link.heal();
    assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isTrue();
    assertThat(scope.lineage().isEmpty()).isTrue();
    assertThat(logs.text()).contains("dropped a write to " + STORE, "has ended");
  }

  @Test
  void threadsThatShareAChannelLoseNothing() throws Exception {
    Channel channel = confirming();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      List<Thread> threads = IntStream.range(0, 4)
          .mapToObj(each -> Antipode.carry((Runnable) () -> {
            for (int number = 0; number < 100; number++) {
              publish(channel, "", queue, false);
            }
          }))
          .map(Thread::new)
          .toList();
      threads.forEach(Thread::start);
      for (Thread thread : threads) {
        thread.join(20_000);
      }
      assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isTrue();
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(400);
    }
    until(() -> a.count(queue) == 400, "all messages");
  }

  @Test
  void theApplicationsOwnListenersHearOfTheSame() throws Exception {
    Channel channel = confirming();
    List<String> heard = new CopyOnWriteArrayList<>();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      channel.clearConfirmListeners();
      channel.clearReturnListeners();
      channel.addConfirmListener(
          (number, multiple) -> heard.add("ack " + scope.pending().size()), (number, multiple) -> heard.add("nack"));
      channel.addReturnListener(message -> heard.add("back"));
      publish(channel, "", queue, false);
      channel.waitForConfirmsOrDie(CONFIRM_MILLIS);
      publish(channel, "", "no-such-queue", true);
      channel.waitForConfirmsOrDie(CONFIRM_MILLIS);
      assertThat(heard).as("ours hears first").containsExactly("ack 0", "back", "ack 0");
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
    }
  }

  @Test
  void manyInFlightAreAllRecorded() throws Exception {
    Channel channel = confirming();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      for (int number = 0; number < 500; number++) {
        publish(channel, "", queue, false);
      }
      assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isTrue();
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(500);
    }
  }

  @Test
  void oneThatCameBackWasNotWritten_SCOPE_17() throws Exception {
    Channel channel = confirming();
    try (LineageScope scope = Antipode.scope()) {
      publish(channel, "", "no-such-queue", true);
      assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isTrue();
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().isEmpty()).isTrue();
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }

  @Test
  void aNegativeConfirmationLeavesItUnknown_SCOPE_17() throws Exception {
    Channel channel = confirming();
    String full = a.queue(Map.of("x-max-length", 1, "x-overflow", "reject-publish"));
    try (LineageScope scope = Antipode.scope()) {
      publish(channel, "", full, false);
      assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isTrue();
      publish(channel, "", full, false);
      assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isFalse();
      assertThat(isUnknown(scope)).isTrue();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
      assertThat(scope.lineage().incomplete()).isEqualTo(Set.of(STORE));
    }
  }

  @Test
  void aChannelThatIsClosedLeavesWhatWasNotConfirmedUnknown() {
    Channel channel = confirming();
    try (LineageScope scope = Antipode.scope()) {
      publish(channel, "no-such-exchange", "", false);
      assertThatThrownBy(() -> channel.waitForConfirms(CONFIRM_MILLIS)).hasMessageContaining("NOT_FOUND");
      assertThat(isUnknown(scope)).as("nobody can say what became of it").isTrue();
      assertThatThrownBy(() -> publish(channel, "", a.queue(), false)).hasMessageContaining("closed");
      assertThat(isUnknown(scope)).as("what never left is not pending").isTrue();
      assertThat(scope.lineage().isEmpty()).isTrue();
    }
  }

  @Test
  void aConnectionThatBreaksLeavesWhatWasNotConfirmedUnknown_andNumbersBeginAnew() throws Exception {
    Link link = a.link();
    ConnectionFactory factory = new ConnectionFactory();
    factory.setNetworkRecoveryInterval(100);
    Channel channel =
        AntipodeRabbit.wrap(a.connection(a.url(link), factory).createChannel(), options().track(true));
    channel.confirmSelect();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      publish(channel, "", queue, false);
      assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isTrue();
      link.silence();
      publish(channel, "", queue, false);
      link.cut();
      until(() -> isUnknown(scope), "the outcome is unknown");
      link.heal();
      until(channel::isOpen, "the client's own recovery");
    }
    try (LineageScope scope = Antipode.scope()) {
      publish(channel, "", queue, false);
      assertThat(channel.waitForConfirms(CONFIRM_MILLIS)).isTrue();
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(1);
    }
  }

  @Test
  void waitingForConfirmationsOfASilentBrokerEnds() throws Exception {
    Link link = a.link();
    ConnectionFactory factory = new ConnectionFactory();
    factory.setChannelRpcTimeout(1000); // the client then closes the channel, and waits for an answer to that
    Channel channel =
        AntipodeRabbit.wrap(a.connection(a.url(link), factory).createChannel(), options().track(true));
    channel.confirmSelect();
    try (LineageScope scope = Antipode.scope()) {
      link.silence();
      publish(channel, "", a.queue(), false);
      long begun = System.nanoTime();
      assertThatThrownBy(() -> channel.waitForConfirmsOrDie(300)).isInstanceOf(Exception.class);
      assertThat(System.nanoTime() - begun).isLessThan(10_000_000_000L);
      until(() -> isUnknown(scope), "the channel is dead, and the outcome unknown");
    }
  }

  // Transactions

  @Test
  void committedAndRolledBack_SHIM_11_SCOPE_17() throws IOException {
    Channel channel = tracking();
    String queue = a.queue();
    try (LineageScope scope = Antipode.scope()) {
      publish(channel, "", queue, false);
      channel.txSelect();
      publish(channel, "", queue, false);
      assertThat(scope.lineage().incomplete()).isEqualTo(Set.of(STORE));
      channel.txRollback();
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).as("the first message's alone").hasSize(1);
      publish(channel, "", queue, false);
      publish(channel, "", queue, false);
      assertThat(scope.pending()).hasSize(2);
      channel.txCommit();
      assertThat(scope.pending()).isEmpty();
      assertThat(scope.lineage().ofStore(STORE)).hasSize(3);
      channel.txCommit();
    }
    until(() -> a.count(queue) == 3, "three messages");
  }

  @Test
  void aCommitInDoubtStaysPending_SCOPE_17() throws Exception {
    Link link = a.link();
    Channel channel = AntipodeRabbit.wrap(a.channel(a.url(link)), options().track(true));
    try (LineageScope publishing = Antipode.scope()) { // it ends before (SCOPE-24)
      channel.txSelect();
      publish(channel, "", a.queue(), false);
    }
    try (LineageScope scope = Antipode.scope()) {
      assertThat(scope.lineage().isComplete()).isTrue();
      link.silence();
      List<Throwable> thrown = new CopyOnWriteArrayList<>();
      Thread committing = new Thread(Antipode.carry(() -> {
        try {
          channel.txCommit();
        } catch (IOException | RuntimeException error) {
          thrown.add(error);
        }
      }));
      committing.start();
      until(
          () -> committing.getState() == Thread.State.WAITING || committing.getState() == Thread.State.TIMED_WAITING,
          "the commit is sent");
      assertThat(scope.pending()).hasSize(1);
      link.cut();
      committing.join(20_000);
      assertThat(thrown).hasSize(1);
      assertThat(isUnknown(scope)).isTrue();
      assertThat(scope.lineage().incomplete()).isEqualTo(Set.of(STORE));
    }
  }

  @Test
  void aChannelThatEndsDropsWhatWasNotCommitted() throws Exception {
    Channel channel = tracking();
    try (LineageScope scope = Antipode.scope()) {
      channel.txSelect();
      publish(channel, "", a.queue(), false);
      channel.close();
      until(() -> scope.pending().isEmpty(), "the broker drops it");
      assertThat(scope.lineage().isComplete()).isTrue();
    }
  }
}
