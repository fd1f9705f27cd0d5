package dev.antipode.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Ordered;
import dev.antipode.WriteId;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.FailoverDriver;
import dev.antipode.testing.FailoverFuzzer;
import dev.antipode.testing.FailoverTally;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;

/** The failover fuzzer on the embedded store, with a sound shim and with ones that it has to catch (EPOCH-27). */
class MemoryFailoverTest {
  /** Three servers in this process. */
  private static final class Driver implements FailoverDriver {
    private final Supplier<? extends Shim> shim;
    private final Map<String, MemoryClient> clients = new HashMap<>();
    private final AtomicInteger writes = new AtomicInteger();
    private MemoryStore memory;
    private String primary = "a";

    Driver(Supplier<? extends Shim> shim) {
      this.shim = shim;
    }

    @Override
    public void begin() {
      memory = MemoryStore.named(name())
          .regions("a", "b", "c")
          .lag("b", Duration.ofMillis(2))
          .lag("c", Duration.ofMillis(10))
          .answeredBy(shim);
      servers().forEach(region -> clients.put(region, memory.client(region)));
    }

    @Override
    public void close() {}

    @Override
    public List<String> servers() {
      return List.of("a", "b", "c");
    }

    @Override
    public String primary() {
      return primary;
    }

    @Override
    public List<String> replicas() {
      return servers().stream().filter(Predicate.not(primary::equals)).toList();
    }

    @Override
    public String address(String server) {
      return "/" + server;
    }

    @Override
    public void write(String server, String key, String value) {
      writes.incrementAndGet();
      clients.get(server).set(key, value);
    }

    @Override
    public ValueCheck shows(String server, String key, String value) {
      return value.equals(memory.look(server, key)) ? ValueCheck.YES : ValueCheck.NO;
    }

    @Override
    public Object history(String server) {
      return memory.log().looking(memory.log().node(server), node -> node.instance);
    }

    @Override
    public void settleMarks() {} // a new primary marks the end of the epoch before it by itself

    @Override
    public void lag(String replica, int milliseconds) {
      memory.setLag(replica, Duration.ofMillis(milliseconds));
    }

    @Override
    public void cut(String replica, RandomGenerator chance) {
      memory.freeze(replica);
    }

    @Override
    public void heal(String replica, boolean wait) {
      memory.heal(replica);
    }

    @Override
    public void restartReplica(String replica, Runnable write, boolean wait) {
      memory.stop(replica);
      write.run();
      memory.restart(replica);
    }

    @Override
    public void promote(String replica, Runnable lost) {
      int before = writes.get();
      if (lost != null) {
        servers().forEach(memory::freeze);
        lost.run();
      }
      memory.promote(replica, writes.get() - before);
      primary = replica;
      servers().forEach(memory::heal);
    }

    @Override
    public void rejoin(String server, boolean wait) {
      throw new AssertionError("every server follows the new primary by itself");
    }

    @Override
    public void calm() {
      servers().forEach(region -> {
        memory.heal(region);
        memory.setLag(region, Duration.ZERO);
      });
    }

    @Override
    public void waitCaughtUp() {} // without a lag they always are
  }

  /** Takes the whole of an epoch that has ended for arrived. */
  private static final class TrustsEndedEpochs extends MemoryShim.Positions {
    @Override
    void proved(Node node, Server server) {}

    @Override
    Visibility judge(Node node, WriteId id) {
      Ordered wanted = (Ordered) id.version();
      boolean arrived = !wanted.epoch().equals(node.epoch) || wanted.compareCounter(node.counter) <= 0;
      return arrived ? Visibility.VISIBLE : Visibility.NOT_YET;
    }
  }

  /** Takes what is not there yet for lost. */
  private static final class GivesUpEarly extends MemoryShim.Positions {
    @Override
    Visibility judge(Node node, WriteId id) {
      Visibility answer = super.judge(node, id);
      return answer.isVisible() ? answer : Visibility.unproven("it may be lost");
    }
  }

  private static FailoverTally play(Supplier<? extends Shim> shim, int runs, long seed) {
    return FailoverFuzzer.run(each -> new Driver(shim), runs, seed);
  }

  @Test
  void randomFailoversShowNoFalsePass() {
    FailoverTally tally = play(MemoryShim.Positions::new, 20, 1);
    tally.check(0.0, 0.0);
  }

  @Test
  void aShimThatTrustsEndedEpochsIsCaught() {
    FailoverTally tally = caught(TrustsEndedEpochs::new, each -> !each.falsePasses().isEmpty());
    assertThatThrownBy(() -> tally.check(1.0, 0.0)).isInstanceOf(AssertionError.class);
  }

  @Test
  void aShimThatGivesUpEarlyIsCaught() {
    FailoverTally tally = caught(GivesUpEarly::new, each -> !each.rashAnswers().isEmpty());
    assertThatThrownBy(() -> tally.check(1.0, 0.0)).isInstanceOf(AssertionError.class);
  }

  private static FailoverTally caught(Supplier<? extends Shim> broken, Predicate<FailoverTally> found) {
    FailoverTally tally = play(broken, 1, 0);
    for (int seed = 1; seed < 20 && !found.test(tally); seed++) {
      tally = play(broken, 1, seed);
    }
    assertThat(found.test(tally)).as(tally.toString()).isTrue();
    return tally;
  }
}
