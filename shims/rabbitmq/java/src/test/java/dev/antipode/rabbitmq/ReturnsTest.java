package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.Channel;
import dev.antipode.ConfigurationException;
import dev.antipode.shim.Logs;
import dev.antipode.testing.CapturedLogs;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Messages that go back while the application settles others, on a channel whose broker takes its time (BAR-45). */
class ReturnsTest {
  private final List<String> sent = new CopyOnWriteArrayList<>();
  private final CountDownLatch entered = new CountDownLatch(1);
  private final CountDownLatch released = new CountDownLatch(1);
  private final Returns returns = new Returns(slow());

  /** A channel that takes no {@code basicNack} in before it is released. */
  private Channel slow() {
    return (Channel) Proxy.newProxyInstance(
        Channel.class.getClassLoader(), new Class<?>[] {Channel.class}, (proxy, method, args) -> {
          entered.countDown();
          assertThat(released.await(60, TimeUnit.SECONDS)).isTrue();
          sent.add(method.getName() + " " + args[0]);
          return null;
        });
  }

  @AfterEach
  void release() {
    released.countDown();
  }

  private void waits(long tag) {
    isOver(tag);
    returns.giveBackAfter(tag, Duration.ZERO);
  }

  private void isOver(long tag) {
    MessageDelivery delivery = new MessageDelivery(true, "", Map.of());
    returns.opened(tag, delivery);
    assertThat(returns.closed(tag, delivery, true)).isTrue();
  }

  /** It would acknowledge the message that is going back, which would be lost, and the channel closed. */
  @Test
  void anAcknowledgementOfSeveralDoesNotOvertakeAMessageThatGoesBack() throws Exception {
    waits(3);
    assertThat(entered.await(20, TimeUnit.SECONDS)).isTrue();
    Thread acknowledging = new Thread(() -> {
      try {
        returns.settling(5, true, true, tag -> sent.add("basicAck " + tag));
      } catch (Throwable error) {
        sent.add(error.toString());
      }
    });
    acknowledging.start();
    until(() -> !sent.isEmpty() || acknowledging.getState() == Thread.State.WAITING, "it waits");
    assertThat(sent).isEmpty();
    released.countDown();
    acknowledging.join(20_000);
    assertThat(sent).containsExactly("basicNack 3", "basicAck 5");
  }

  /** PROP-36: all that still wait, and the last thousand that have gone back. */
  @Test
  void anAcknowledgementOfAMessageThatGoesBackIsRefused() throws Throwable {
    LongStream.range(0, 3000).forEach(this::isOver);
    for (long tag : new long[] {0, 2999}) {
      assertThatThrownBy(() -> returns.settling(tag, false, true, other -> sent.add("basicAck " + other)))
          .isInstanceOf(ConfigurationException.class).hasMessageContaining("would be lost");
    }
    assertThat(sent).isEmpty();
    returns.settling(3001, false, true, tag -> sent.add("basicAck " + tag));
    assertThat(sent).containsExactly("basicAck 3001");
  }

  /** PROP-36: all would be also the copies that the broker has delivered again since the messages went back. */
  @Test
  void allAreThoseThatWereHandedOut() throws Throwable {
    released.countDown();
    LongStream.rangeClosed(1, 3).forEach(returns::handedOut);
    isOver(1);
    isOver(3);
    returns.settling(0, true, true, tag -> sent.add("basicAck " + tag));
    returns.settling(0, true, true, tag -> sent.add("basicAck " + tag));
    assertThat(sent).containsExactly("basicNack 1", "basicNack 3", "basicAck 2");
  }

  /** PROP-36: a message whose acknowledgement was rolled back is the application's again. */
  @Test
  void whatWasRolledBackIsAcknowledgedAgain() throws Throwable {
    released.countDown();
    returns.selected();
    LongStream.rangeClosed(1, 4).forEach(returns::handedOut);
    isOver(1);
    for (boolean isCommitted : new boolean[] {false, true}) {
      returns.settling(4, false, true, tag -> sent.add("basicAck " + tag));
      returns.settling(0, true, true, tag -> sent.add("basicAck " + tag));
      returns.ended(isCommitted);
    }
    returns.settling(0, true, true, tag -> sent.add("basicAck " + tag));
    assertThat(sent).containsExactly("basicAck 4", "basicNack 1", "basicAck 3", "basicAck 4", "basicAck 3");
  }

  @Test
  void whatTheBrokerTakesBackItselfIsNotGivenBack() throws Throwable {
    MessageDelivery delivery = new MessageDelivery(true, "", Map.of());
    returns.opened(3, delivery);
    assertThat(returns.closed(3, delivery, true)).isTrue();
    returns.recovering(tag -> sent.add("basicRecover"));
    returns.giveBackAfter(3, Duration.ZERO);
    passed();
    assertThat(sent).containsExactly("basicRecover");
  }

  @Test
  void aBrokerThatTakesNothingInHoldsOneThreadUp() throws Exception {
    LongStream.range(0, 20).forEach(this::isOver); // all of them: while one goes back the channel waits
    LongStream.range(0, 20).forEach(tag -> returns.giveBackAfter(tag, Duration.ZERO));
    passed();
    assertThat(entered.await(20, TimeUnit.SECONDS)).isTrue();
    assertThat(Thread.getAllStackTraces().values())
        .filteredOn(frames -> Arrays.stream(frames).anyMatch(frame -> frame.getClassName().equals(Returns.class.getName())))
        .hasSize(1);
    released.countDown();
    until(() -> sent.size() == 20, "all of them");
  }

  @Test
  void whatIsRipeGoesBackWhenAThreadIsToBeHadAgain_BAR_61() {
    AtomicInteger lacking = new AtomicInteger(1);
    Returns poor = new Returns(slow(), work -> {
      if (lacking.getAndDecrement() > 0) {
        throw new OutOfMemoryError("unable to create native thread");
      }
      work.run();
    });
    released.countDown();
    for (long tag = 1; tag <= 2; tag++) {
      MessageDelivery delivery = new MessageDelivery(true, "", Map.of());
      poor.opened(tag, delivery);
      assertThat(poor.closed(tag, delivery, true)).isTrue();
      poor.giveBackAfter(tag, Duration.ZERO);
    }
    until(() -> sent.size() == 2, "both");
  }

  @Test
  void aFaultOfOursKeepsNoOtherMessageBack_BAR_61() {
    List<String> tried = new CopyOnWriteArrayList<>();
    Returns failing = new Returns((Channel) Proxy.newProxyInstance(
        Channel.class.getClassLoader(), new Class<?>[] {Channel.class}, (proxy, method, args) -> {
          tried.add(method.getName() + " " + args[0]);
          throw new OutOfMemoryError("no memory to send it");
        }));
    for (long tag = 1; tag <= 2; tag++) {
      MessageDelivery delivery = new MessageDelivery(true, "", Map.of());
      failing.opened(tag, delivery);
      assertThat(failing.closed(tag, delivery, true)).isTrue();
      failing.giveBackAfter(tag, Duration.ZERO);
      int count = (int) tag;
      until(() -> tried.size() == count, "it is tried");
    }
  }

  /** OBS-14: the line has a code; and where the application's handler throws, the messages behind it go back all the same. */
  @Test
  void aChannelThatHasEndedIsTold_OBS_14() {
    List<String> tried = new CopyOnWriteArrayList<>();
    Returns ended = new Returns((Channel) Proxy.newProxyInstance(
        Channel.class.getClassLoader(), new Class<?>[] {Channel.class}, (proxy, method, args) -> {
          tried.add(method.getName() + " " + args[0]);
          throw new IOException("it is closed");
        }));
    Handler failing = new Handler() {
      @Override
      public void publish(LogRecord line) {
        throw new IllegalStateException("the disk is full");
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    };
    Logger logger = Logger.getLogger("dev.antipode");
    Logs.reset();
    try (CapturedLogs logs = new CapturedLogs()) {
      logger.addHandler(failing);
      for (long tag = 1; tag <= 2; tag++) {
        MessageDelivery delivery = new MessageDelivery(true, "", Map.of());
        ended.opened(tag, delivery);
        assertThat(ended.closed(tag, delivery, true)).isTrue();
        ended.giveBackAfter(tag, Duration.ZERO);
      }
      until(() -> tried.size() == 2, "both are tried");
      until(() -> !logs.lines().isEmpty(), "the line");
      assertThat(logs.lines()).singleElement().asString().contains("it is closed", "AP518");
    } finally {
      logger.removeHandler(failing);
    }
  }

  /** All delays that began before have passed. */
  private static void passed() throws Exception {
    CompletableFuture
        .runAsync(() -> {}, CompletableFuture.delayedExecutor(0, TimeUnit.NANOSECONDS, Runnable::run))
        .get(20, TimeUnit.SECONDS);
  }
}
