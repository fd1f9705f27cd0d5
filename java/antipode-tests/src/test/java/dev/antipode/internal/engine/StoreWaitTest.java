package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.BarrierResult;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How stores that wait by themselves, or keep a pace of their own, are asked (BAR-38). */
@ExtendWith(AntipodeIsolated.class)
class StoreWaitTest {
  /** A store that waits by itself. */
  static class BlockingShim extends FakeShim {
    static volatile CountDownLatch arrived;
    static final AtomicInteger WAITS = new AtomicInteger();

    @Override
    public Capabilities capabilities() {
      return Capabilities.objects().blockingWait(true);
    }

    @Override
    public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
      WAITS.incrementAndGet();
      boolean there = arrived.await(timeout.toNanos(), TimeUnit.NANOSECONDS);
      return Collections.nCopies(ids.size(), there ? Visibility.VISIBLE : Visibility.NOT_YET);
    }
  }

  /** BAR-38. */
  @Test
  void aStoresOwnBlockingWaitIsUsed() {
    BlockingShim.arrived = new CountDownLatch(1);
    FakeShim.store(
        BlockingShim::new,
        StoreOptions.named("w").replicas(new Fake("w1", FakeShim.always(Visibility.NOT_YET))));
    assertThat(EngineTest.wait(EngineTest.object("w", "k"), Duration.ofMillis(300)).satisfied()).isFalse();
    EngineTest.started(() -> BlockingShim.arrived.countDown());
    assertThat(EngineTest.wait(EngineTest.object("w", "k"), EngineTest.LONG).satisfied()).isTrue();
  }

  /** A store whose own wait would last long: it must be told of whoever comes, and not be used for a look. */
  static final class InterruptedShim extends BlockingShim {
    @Override
    public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
      WAITS.incrementAndGet();
      long deadline = System.nanoTime() + EngineTest.LONG.toNanos();
      List<Visibility> answers = ids.stream()
          .map(id -> id.key().text().equals("there") ? Visibility.VISIBLE : Visibility.NOT_YET)
          .toList();
      while (!answers.contains(Visibility.VISIBLE) && !server.interrupted() && System.nanoTime() < deadline) {
        Thread.sleep(1);
      }
      return answers;
    }
  }

  @Test
  void aBlockingWaitIsToldOfANewcomerAndNotUsedForALook() throws Exception {
    BlockingShim.WAITS.set(0);
    FakeShim.store(
        InterruptedShim::new,
        StoreOptions.named("w").replicas(new Fake("w1", FakeShim.always(Visibility.NOT_YET))));
    assertThat(EngineTest.wait(EngineTest.object("w", "k"), Duration.ZERO).satisfied()).isFalse();
    assertThat(BlockingShim.WAITS.get()).as("a look does not wait at the server").isZero();
    Thread first = EngineTest.started(() -> EngineTest.wait(EngineTest.object("w", "k"), Duration.ofSeconds(3)));
    EngineTest.until(() -> BlockingShim.WAITS.get() > 0);
    BarrierResult result = EngineTest.wait(EngineTest.object("w", "there"), EngineTest.LONG);
    assertThat(result.satisfied()).isTrue();
    assertThat(result.waited()).isLessThan(Duration.ofSeconds(2));
    EngineTest.join(first);
  }

  /** BAR-38: at most 25 questions a second to a silent server. */
  @Test
  void aWaitOfTheStoresOwnThatDoesNotWaitIsSpacedLikeAPoll() {
    class Returning extends EngineTest.LogShim {
      @Override
      public Capabilities capabilities() {
        return Capabilities.positions().blockingWait(true);
      }

      @Override
      public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
        return visible(ids, server);
      }
    }

    EngineTest.Log log = new EngineTest.Log();
    FakeShim.store(Returning::new, StoreOptions.named("log").replicas(log));
    Duration took = EngineTest.took(() -> EngineTest.wait(EngineTest.at(1), Duration.ofSeconds(2)));
    assertThat(log.asked.get()).isLessThanOrEqualTo((int) (25 * took.toMillis() / 1000.0) + 10);
  }

  /** BAR-38: with back-off the fortieth question would come after 19 s. */
  @Test
  void aShimWithAPaceOfItsOwnIsCalledWithoutBackOff() throws Exception {
    class OwnPace extends FakeShim {
      @Override
      public Duration ownPace() {
        return Duration.ofMillis(50);
      }
    }

    Fake fake = new Fake("paced", FakeShim.always(Visibility.NOT_YET));
    FakeShim.store(OwnPace::new, StoreOptions.named("paced").replicas(fake));
    Thread waiting = EngineTest.started(() -> EngineTest.wait(EngineTest.object("paced", "k"), EngineTest.LONG));
    long began = System.nanoTime();
    EngineTest.until(() -> fake.asked.get() >= 40);
    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(14));
    fake.answer = FakeShim.always(Visibility.VISIBLE);
    EngineTest.join(waiting);
  }
}
