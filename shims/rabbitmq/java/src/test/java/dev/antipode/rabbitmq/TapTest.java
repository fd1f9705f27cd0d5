package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.Store;
import dev.antipode.StoreOptions.OnUnfit;
import dev.antipode.UnfitStoreException;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.RegisteredStore;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.assertj.core.util.Throwables;
import org.junit.jupiter.api.Test;

/** {@code track} and taps: a message can be waited for where somebody reads the region's stream (SHIM-17). */
class TapTest extends WithTaps {
  @Test
  void aTrackedMessageJoinsTheLineageAndIsWaitedFor_SHIM_17() throws Exception {
    String exchange = b.exchange("fanout");
    Tap tap = b.tap(exchange);
    Channel channel = b.wrapped(options().track(true).tap(tap));
    assertThat(Registry.current().need(STORE).replicas()).containsExactly(tap.address());
    channel.confirmSelect();
    try (LineageScope scope = Antipode.scope()) {
      channel.basicPublish(exchange, "", null, octets("body"));
      channel.waitForConfirmsOrDie(20_000);
      assertThat(scope.lineage().ofStore(STORE).get(0).key().text()).isEqualTo(exchange);
      BarrierResult result = Antipode.barrier(BarrierOptions.defaults().timeout(FIVE));
      assertThat(result.satisfied() && result.complete()).isTrue();
    }
  }

  @Test
  void aMessageThatHasNotArrivedIsWaitedForUntilItHas() {
    String exchange = b.exchange("fanout");
    Tap tap = b.tap(exchange);
    AntipodeRabbit.register(options().tap(tap));
    String mark = mark();
    long begun = System.nanoTime();
    BarrierResult late = judge(message(mark), Duration.ofMillis(300));
    assertThat(late.store(STORE).verdict()).isEqualTo(Verdict.TIMED_OUT);
    assertThat(System.nanoTime() - begun).as("bounded by the deadline").isBetween(300_000_000L, 2_000_000_000L);
    assertThat(late.store(STORE).reason()).contains(tap.queue());
    CompletableFuture<BarrierResult> waiting = Antipode.barrierAsync(judging(message(mark), Duration.ofSeconds(20)));
    until(() -> Registry.current().need(STORE).parked() > 0, "the barrier is parked");
    arrive(exchange, mark);
    assertThat(waiting.join().satisfied()).isTrue();
  }

  /** Not found by polling, whose interval here is longer than the test. */
  @Test
  void arrivalIsPushed_SHIM_19() {
    Antipode.configure(Settings.defaults().poll(Duration.ofSeconds(60)));
    String exchange = b.exchange("fanout");
    AntipodeRabbit.register(options().tap(b.tap(exchange)));
    for (int number = 0; number < 3; number++) {
      String mark = mark();
      CompletableFuture<BarrierResult> waiting =
          Antipode.barrierAsync(judging(message(mark), Duration.ofSeconds(20)));
      until(() -> memory().wanted() > 0, "the reader knows");
      arrive(exchange, mark);
      assertThat(waiting.join().satisfied()).isTrue();
    }
  }

  /** The first barrier reads the stream's past, and a later one what came while nobody read it. */
  @Test
  void whatArrivedBeforeAnybodyWaitedIsFound() {
    String exchange = b.exchange("fanout");
    Tap tap = b.tap(exchange);
    List<String> before = arrived(exchange, 200);
    AntipodeRabbit.register(options().tap(tap));
    assertThat(verdict(before.get(0))).isEqualTo(Verdict.VISIBLE);
    assertThat(verdict(before.get(199))).isEqualTo(Verdict.VISIBLE);
    until(() -> memory().offset() == 199, "the past is read");
    server().retire();
    until(() -> ((RabbitShim.Session) server().session()).reader() == null, "the connection is given up");
    List<String> meanwhile = arrived(exchange, 100);
    for (String each : List.of(meanwhile.get(99), meanwhile.get(0), before.get(5))) {
      assertThat(verdict(each)).isEqualTo(Verdict.VISIBLE);
    }
    until(() -> memory().offset() == 299, "read on, and not anew");
  }

  @Test
  void memoryIsBoundedAndWhatWasForgottenNeverPasses() {
    String exchange = b.exchange("fanout");
    Tap tap = b.tap(exchange);
    List<String> marks = arrived(exchange, 200);
    AntipodeRabbit.register(options().tap(tap.remember(20)));
    assertThat(verdict(marks.get(199))).isEqualTo(Verdict.VISIBLE);
    assertThat(memory().size()).isEqualTo(20);
    assertThat(verdict(message(marks.get(3)), Duration.ofMillis(200))).isEqualTo(Verdict.TIMED_OUT);
  }

  @Test
  void withoutATapArrivalIsUnprovenAndSaysWhatToDo() throws Exception {
    Channel channel = b.wrapped(options().track(true));
    String queue = b.queue();
    long begun = System.nanoTime();
    try (LineageScope scope = Antipode.scope()) {
      channel.basicPublish("", queue, null, new byte[0]);
      BarrierResult result = Antipode.barrier(BarrierOptions.defaults().timeout(FIVE).onTimeout(Policy.PROCEED));
      assertThat(System.nanoTime() - begun).as("at once").isLessThan(2_000_000_000L);
      assertThat(result.satisfied()).isFalse();
      assertThat(result.store(STORE).verdict()).isEqualTo(Verdict.UNPROVEN);
      assertThat(result.store(STORE).reason()).contains("tap", "register");
    }
  }

  @Test
  void aConsumerNeedsNoTapForTheMessageThatItGot() throws Exception {
    String queue = b.queue();
    List<BarrierResult> results = new CopyOnWriteArrayList<>();
    Channel publisher = b.wrapped(options().track(true));
    try (LineageScope scope = Antipode.scope()) {
      publisher.basicPublish("", queue, null, new byte[0]);
    }
    Channel consumer = b.wrapped();
    consumer.basicConsume(queue, true, (tag, delivery) -> {
      results.add(judge(LineageScope.current().lineage(), FIVE));
      results.add(judge(LineageScope.current().lineage().union(message("another-message")), FIVE));
    }, tag -> {});
    until(() -> results.size() == 2, "both barriers");
    assertThat(results.get(0).satisfied()).isTrue();
    assertThat(results.get(1).store(STORE).verdict())
        .as("another message is not proved by this one").isEqualTo(Verdict.UNPROVEN);
  }

  /** The broker of a connection is known to be the tap's: what was consumed there has arrived there, and nowhere else. */
  @Test
  void whatWasConsumedAtATapsBrokerHasArrivedThere() throws Exception {
    Tap tap = b.tap(b.exchange("fanout"));
    assertThat(Broker.of(b.connection()).address()).isEqualTo(tap.broker());
    assertThat(Broker.of(a.connection()).address()).isNotEqualTo(tap.broker());
    AntipodeRabbit.register(options().tap(tap));
    for (Region region : List.of(a, b)) {
      String queue = region.queue();
      List<Verdict> verdicts = new CopyOnWriteArrayList<>();
      Channel publisher = region.wrapped(options().track(true));
      try (LineageScope scope = Antipode.scope()) {
        publisher.basicPublish("", queue, null, new byte[0]);
      }
      region.wrapped().basicConsume(
          queue,
          true,
          (tag, delivery) -> verdicts.add(verdict(LineageScope.current().lineage(), Duration.ofMillis(500))),
          tag -> {});
      until(() -> !verdicts.isEmpty(), "the message");
      assertThat(verdicts).containsExactly(region == b ? Verdict.VISIBLE : Verdict.TIMED_OUT);
    }
  }

  /** Applications use {@code message_id} for their own purposes: the same one twice must not pass for the second. */
  @Test
  void aMessageIdThatIsUsedAgainProvesNothingForAnotherMessage() throws Exception {
    String exchange = b.exchange("direct");
    Tap tap = b.tap(exchange);
    b.own().queueBind(tap.queue(), exchange, "arrives");
    Channel channel = b.wrapped(options().track(true).tap(tap));
    AMQP.BasicProperties given =
        new AMQP.BasicProperties.Builder().messageId("order-7").headers(Map.of("mine", 1)).build();
    Lineage first;
    try (LineageScope scope = Antipode.scope()) {
      channel.basicPublish(exchange, "arrives", given, octets("1"));
      assertThat(Antipode.barrier(BarrierOptions.defaults().timeout(FIVE)).satisfied()).isTrue();
      first = scope.lineage();
    }
    try (LineageScope scope = Antipode.scope()) {
      channel.basicPublish(exchange, "does not arrive", given, octets("2"));
      assertThat(verdict(scope.lineage(), Duration.ofMillis(300))).isEqualTo(Verdict.TIMED_OUT);
      assertThat(scope.lineage()).isNotEqualTo(first);
    }
    assertThat(given.getHeaders()).isEqualTo(Map.of("mine", 1));
  }

  @Test
  void propertiesOfATrackedMessageGetANewMark() throws Exception {
    Channel channel = b.wrapped(options().track(true));
    String queue = b.queue();
    AMQP.BasicProperties first;
    AMQP.BasicProperties second;
    AMQP.BasicProperties third;
    try (LineageScope scope = Antipode.scope()) {
      channel.basicPublish("", queue, null, new byte[0]);
      first = b.get(queue).getProps();
      channel.basicPublish("", queue, first, new byte[0]);
      second = b.get(queue).getProps();
      channel.basicPublish("", queue, second, new byte[0]);
      third = b.get(queue).getProps();
    }
    assertThat(List.of(second.getMessageId(), third.getMessageId()))
        .containsOnly(first.getMessageId());
    assertThat(headersOf(first)).doesNotContainKey(Marks.HEADER);
    assertThat(List.of(Marks.of(first), Marks.of(second), Marks.of(third))).doesNotHaveDuplicates();
  }

  @Test
  void aTapThatCannotBeReadIsRefusedAtOnce_SHIM_3() throws Exception {
    String classic = b.queue();
    String url = b.url();
    Map<String, Tap> wrong = Map.of(
        "declareTap", Tap.of(url, "no-such-queue"),
        "no stream queue", Tap.of(url, classic),
        "may not log in", Tap.of(url.replace("guest:guest", "guest:wrong"), classic),
        "virtual host", Tap.of(url.substring(0, url.lastIndexOf('/')) + "/no-such-vhost", classic));
    wrong.forEach((words, tap) -> assertThatThrownBy(() -> AntipodeRabbit.register(options().tap(tap)))
        .isInstanceOf(UnfitStoreException.class)
        .hasMessageContaining(words)
        .message().doesNotContain("guest:", "wrong"));
    AntipodeRabbit.register(options().tap(Tap.of(url, classic)).onUnfit(OnUnfit.UNPROVEN));
    assertThat(verdict(message("m"), FIVE)).isEqualTo(Verdict.UNPROVEN);
    b.publish("", classic, null, "kept");
    assertThat(b.get(classic).getBody()).as("a queue that is no tap is not emptied").isEqualTo(octets("kept"));
  }

  @Test
  void aBrokerOutOfReachIsNoMistakeAndNoProof() throws Exception {
    try (Socket unused = new Socket()) {
      unused.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0)); // nobody listens there, or can
      Antipode.configure(Settings.defaults().replicaOutAfter(Duration.ofMillis(500)));
      AntipodeRabbit.register(options().tap("amqp://guest:guest@127.0.0.1:" + unused.getLocalPort() + "/%2F#tap"));
      long begun = System.nanoTime();
      BarrierResult result = judge(message("m"), Duration.ofSeconds(3));
      assertThat(System.nanoTime() - begun).isLessThan(5_000_000_000L);
      assertThat(result.store(STORE).verdict()).isIn(Verdict.UNPROVEN, Verdict.TIMED_OUT);
      assertThat(result.explain() + logs.text()).doesNotContain("guest");
    }
  }

  @Test
  void tapsAsTextAndAsFactories() throws Exception {
    String exchange = b.exchange("fanout");
    Tap tap = b.tap(exchange);
    assertThat(Tap.of((Object) (b.url() + "#" + tap.queue()))).isEqualTo(tap);
    assertThat(tap.address()).doesNotContain("guest").endsWith("/b#" + tap.queue());
    assertThat(tap).hasToString("<Tap " + tap.address() + ">");
    for (String bad : List.of("amqp://host/%2F", "http://host#q", "")) {
      assertThatThrownBy(() -> options().tap(bad))
          .isInstanceOf(ConfigurationException.class).hasMessageContaining("stream queue");
    }
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(new URI(b.url()));
    Store store = AntipodeRabbit.register(RabbitOptions.named("others").tap(() -> List.of(Tap.of(factory, tap.queue()))));
    assertThat(store.replicas()).containsExactly(tap.address());
    AntipodeRabbit.register(options().tap(b.url() + "#" + tap.queue()));
    arrive(exchange, "m");
    assertThat(verdict("m")).isEqualTo(Verdict.VISIBLE);
  }

  /** A wrong character of a password is what makes most URLs wrong: neither the message nor a cause shows it. */
  @Test
  void aUrlThatIsNoneIsRefusedWithoutItsPassword() {
    for (String url : List.of("amqp://app:se^cret@broker/%2F", "amqp://app:se/cret@broker/%2F", "amqp://app:[secret@broker/%2F",
        "amqp://app:se%zzcret@broker/%2F", "http://app:secret@broker/")) {
      assertThatThrownBy(() -> Tap.of(url, "tap"))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("no broker's URL: broker/")
          .extracting(error -> Throwables.getStackTrace(error), STRING)
          .doesNotContain("cret@").doesNotContain("se^cret", "se/cret", "[secret");
    }
  }

  /** A barrier that asks again and again must not leave a thread behind each time. */
  @Test
  void aTapThatCannotBeReadLeavesNothingBehind() throws Exception {
    String queue = "no-such-tap-" + UUID.randomUUID();
    Tap tap = Tap.of(b.url(), queue);
    TapReader reader = new TapReader(tap, new TapMemory(1), () -> {}, FIVE);
    assertThatThrownBy(() -> reader.start(FIVE)).isInstanceOf(TapRefusedException.class);
    until(
        () -> Thread.getAllStackTraces().keySet().stream().noneMatch(thread -> thread.getName().equals("antipode-tap-" + queue)),
        "its threads end");
  }

  @Test
  void aConnectionThatBreaksIsMadeAgain() {
    String exchange = b.exchange("fanout");
    Tap tap = b.tap(exchange);
    Link link = b.link();
    AntipodeRabbit.register(options().tap(Tap.of(b.url(link), tap.queue())));
    arrive(exchange, "one");
    assertThat(verdict("one")).isEqualTo(Verdict.VISIBLE);
    link.cut();
    arrive(exchange, "two");
    assertThat(verdict(message("two"), Duration.ofMillis(300))).isNotEqualTo(Verdict.VISIBLE);
    link.heal();
    assertThat(verdict(message("two"), Duration.ofSeconds(15))).isEqualTo(Verdict.VISIBLE);
  }

  /** One of the region's two brokers does not answer: the barrier passes for the other, and says so. */
  @Test
  void aSilentBrokerIsLeftOutAndSaidSo() {
    Antipode.configure(Settings.defaults().replicaOutAfter(Duration.ofSeconds(1)));
    String exchange = b.exchange("fanout");
    Tap tap = b.tap(exchange);
    Link link = b.link();
    AntipodeRabbit.register(options().tap(tap, Tap.of(b.url(link), tap.queue())));
    arrive(exchange, "one");
    assertThat(judge(message("one"), Duration.ofSeconds(15)).complete()).isTrue();
    link.silence();
    arrive(exchange, "two");
    long begun = System.nanoTime();
    BarrierResult result = judge(message("two"), Duration.ofSeconds(15));
    assertThat(System.nanoTime() - begun).isLessThan(6_000_000_000L);
    assertThat(result.satisfied()).isTrue();
    assertThat(result.complete()).isFalse();
    assertThat(result.store(STORE).leftOut()).hasSize(1);
    link.heal();
    until(() -> judge(message("two"), Duration.ofSeconds(2)).complete(), "the broker is back");
  }

  @Test
  void aForgedOrForeignIdentifierIsUnproven() {
    AntipodeRabbit.register(options().tap(b.tap(b.exchange("fanout"))));
    assertThat(verdict(Lineage.of(WriteId.position(STORE, "e", 5)), FIVE)).isEqualTo(Verdict.UNPROVEN);
  }

  @Test
  void noThreadIsLeft() throws Exception {
    Set<Thread> before = Thread.getAllStackTraces().keySet(); // tests before this one may be ending still
    Tap tap = b.tap(b.exchange("fanout"));
    for (int number = 0; number < 3; number++) {
      TapReader reader = new TapReader(tap, new TapMemory(10), () -> {}, Duration.ofSeconds(2));
      reader.start(Duration.ofSeconds(2));
      reader.check(Duration.ofSeconds(1));
      reader.close();
      reader.close();
      TapReader refused =
          new TapReader(Tap.of(b.url(), b.queue()), new TapMemory(10), () -> {}, Duration.ofSeconds(2));
      assertThatThrownBy(() -> refused.start(Duration.ofSeconds(2)))
          .isInstanceOf(TapRefusedException.class).hasMessageContaining("x-stream-offset");
      refused.close();
    }
    until(
        () -> Thread.getAllStackTraces().keySet().stream()
            .noneMatch(thread -> thread.getName().contains("antipode-tap") && !before.contains(thread)),
        "the threads' end");
  }

  @Test
  void aRegistryThatIsGivenUpEndsItsConnections() {
    String exchange = b.exchange("fanout");
    Tap tap = b.tap(exchange);
    RegisteredStore store = (RegisteredStore) AntipodeRabbit.register(options().tap(tap));
    arrive(exchange, "m");
    assertThat(verdict("m")).isEqualTo(Verdict.VISIBLE);
    store.forget();
    until(
        () -> Thread.getAllStackTraces().keySet().stream().noneMatch(thread -> thread.getName().contains(tap.queue())),
        "the threads' end");
  }
}
