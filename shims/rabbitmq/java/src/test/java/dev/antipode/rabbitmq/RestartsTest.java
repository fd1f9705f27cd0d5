package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.EXCHANGE;
import static dev.antipode.rabbitmq.Region.KIND;
import static dev.antipode.rabbitmq.Region.done;
import static dev.antipode.rabbitmq.Region.until;
import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.MessageProperties;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Verdict;
import dev.antipode.lab.Lab;
import dev.antipode.testing.AntipodeIsolated;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Brokers that crash, come back, or come back empty, on two brokers of their own. */
@ExtendWith(AntipodeIsolated.class)
class RestartsTest {
  private static final String QUEUE = "test.arrived";
  private static final Duration BRIEF = Duration.ofMillis(200);
  private static final Duration LONG = Duration.ofSeconds(60);

  private final Map<String, Lineage> sent = new HashMap<>();
  private final Set<String> arrived = ConcurrentHashMap.newKeySet();
  private volatile boolean watching = true;

  private static BarrierResult judge(Lineage lineage, Duration timeout) {
    return Antipode.barrier(BarrierOptions.defaults()
        .lineage(lineage).timeout(timeout).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED));
  }

  private static Verdict verdict(Lineage lineage, Duration timeout) {
    long begun = System.nanoTime();
    Verdict verdict = judge(lineage, timeout).store(EXCHANGE).verdict();
    assertThat(Duration.ofNanos(System.nanoTime() - begun))
        .as("no hang, with a deadline of %s", timeout).isLessThan(timeout.plusMillis(1500));
    return verdict;
  }

  /** Persistent and confirmed. */
  private List<String> publish(Lab lab, int count) {
    try (Region a = new Region(lab, "a")) {
      Channel channel = a.wrapped(RabbitOptions.named(EXCHANGE).track(true));
      done(channel::confirmSelect);
      List<String> bodies = new ArrayList<>();
      for (int number = 0; number < count; number++) {
        String body = UUID.randomUUID().toString();
        try (LineageScope scope = Antipode.scope()) {
          done(() -> {
            channel.basicPublish(
                EXCHANGE, "", MessageProperties.PERSISTENT_BASIC, body.getBytes(StandardCharsets.UTF_8));
            channel.waitForConfirmsOrDie(20_000);
            return null;
          });
          sent.put(body, scope.lineage());
        }
        bodies.add(body);
      }
      return bodies;
    }
  }

  /** Notes what the queue in B gives, through its restarts: the truth, kept by a consumer that knows no lineage. */
  private void watch(Lab lab) {
    while (watching) {
      try (Region b = new Region(lab, "b")) {
        Channel channel = b.channel();
        channel.queueDeclare(QUEUE, true, false, false, null);
        channel.queueBind(QUEUE, EXCHANGE, "");
        while (watching) {
          GetResponse message = channel.basicGet(QUEUE, true);
          if (message == null) {
            Thread.sleep(10);
          } else {
            arrived.add(new String(message.getBody(), StandardCharsets.UTF_8));
          }
        }
      } catch (InterruptedException interrupted) {
        return;
      } catch (Exception notThere) {
        Thread.yield();
      }
    }
  }

  private void check(List<String> bodies, boolean allArrive) {
    for (String body : bodies) {
      if (verdict(sent.get(body), BRIEF) == Verdict.VISIBLE) {
        until(() -> arrived.contains(body), "the barrier let it pass");
      }
    }
    if (allArrive) {
      for (String body : bodies) {
        until(() -> verdict(sent.get(body), Duration.ofSeconds(2)) == Verdict.VISIBLE, body, LONG);
      }
    }
  }

  @Test
  @Timeout(480)
  void noRestartMakesABarrierPassFalselyOrHang() throws Exception {
    try (Lab lab = Lab.of(KIND).up(); Region b = new Region(lab, "b")) {
      b.own().queueDeclare(QUEUE, true, false, false, null);
      b.own().queueBind(QUEUE, EXCHANGE, "");
      Tap tap = Tap.of(b.url(), AntipodeRabbit.declareTap(b.own(), EXCHANGE));
      AntipodeRabbit.register(RabbitOptions.named(EXCHANGE).tap(tap));
      Thread watcher = new Thread(() -> watch(lab));
      watcher.setDaemon(true);
      watcher.start();

      List<String> first = publish(lab, 50);
      check(first, true);
      lab.restart(KIND, "b"); // in order first: 3.10 loses a stream that was declared seconds before a crash
      check(publish(lab, 50), true);
      restart(lab, "b", Map.of("crash", true));
      check(publish(lab, 50), true);

      lab.partition(KIND, "b");
      List<String> held = publish(lab, 20);
      assertThat(held).allMatch(body -> verdict(sent.get(body), Duration.ofMillis(50)) == Verdict.TIMED_OUT);
      restart(lab, "a", Map.of("crash", true, "wait", false));
      lab.heal();
      check(held, true);

      restart(lab, "b", Map.of("source", "nothing"));
      check(publish(lab, 20), false);
      assertThat(verdict(sent.get(first.get(0)), Duration.ofMillis(500)))
          .as("arrived stays arrived, or nobody can tell").isNotEqualTo(Verdict.TIMED_OUT);
      try (Region anew = new Region(lab, "b")) {
        AntipodeRabbit.declareTap(anew.own(), EXCHANGE);
      }
      lab.verb(KIND, "wait_probe", EXCHANGE);
      check(publish(lab, 20), true);
      watching = false;
      watcher.join(10_000);
      assertThat(watcher.isAlive()).isFalse();
    }
  }

  private static void restart(Lab lab, String server, Map<String, ?> how) {
    lab.verb(KIND, "restart", List.of(server), how, () -> {});
  }
}
