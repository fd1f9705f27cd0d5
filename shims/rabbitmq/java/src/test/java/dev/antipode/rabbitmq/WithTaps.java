package dev.antipode.rabbitmq;

import static dev.antipode.rabbitmq.Region.done;

import com.rabbitmq.client.Channel;
import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.Policy;
import dev.antipode.Verdict;
import dev.antipode.internal.engine.RegionStore;
import dev.antipode.internal.engine.ServerEngine;
import dev.antipode.internal.store.Registry;
import java.time.Duration;
import java.util.List;
import java.util.UUID;

/** Tests of taps: what arrives, and what barriers say of it. */
abstract class WithTaps extends WithBroker {
  static final Duration FIVE = Duration.ofSeconds(5);

  static BarrierOptions judging(Lineage lineage, Duration timeout) {
    return BarrierOptions.defaults()
        .lineage(lineage).timeout(timeout).onTimeout(Policy.PROCEED).onUnproven(Policy.PROCEED);
  }

  static BarrierResult judge(Lineage lineage, Duration timeout) {
    return Antipode.barrier(judging(lineage, timeout));
  }

  static Verdict verdict(Lineage lineage, Duration timeout) {
    return judge(lineage, timeout).store(STORE).verdict();
  }

  static Verdict verdict(String mark) {
    return verdict(message(mark), FIVE);
  }

  static ServerEngine server() {
    return RegionStore.of(Registry.current().need(STORE)).servers(false).get(0);
  }

  static TapMemory memory() {
    return server().session() instanceof RabbitShim.Session session ? session.memory() : new TapMemory(1);
  }

  static String mark() {
    return UUID.randomUUID().toString();
  }

  void arrive(String exchange, String mark) {
    b.publish(exchange, "", messageId(mark), "");
  }

  /** Messages that the broker has confirmed. */
  List<String> arrived(String exchange, int count) {
    List<String> marks = java.util.stream.IntStream.range(0, count).mapToObj(each -> mark()).toList();
    done(() -> {
      Channel channel = b.channel();
      channel.confirmSelect();
      for (String mark : marks) {
        channel.basicPublish(exchange, "", messageId(mark), new byte[0]);
      }
      channel.waitForConfirmsOrDie(20_000);
      return null;
    });
    return marks;
  }
}
