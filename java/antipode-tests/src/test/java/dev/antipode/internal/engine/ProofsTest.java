package dev.antipode.internal.engine;

import static dev.antipode.internal.engine.EngineTest.LONG;
import static dev.antipode.internal.engine.EngineTest.at;
import static dev.antipode.internal.engine.EngineTest.logStore;
import static dev.antipode.internal.engine.EngineTest.object;
import static dev.antipode.internal.engine.EngineTest.server;
import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.internal.engine.EngineTest.Log;
import dev.antipode.internal.engine.EngineTest.LogShim;
import dev.antipode.internal.engine.FakeShim.Fake;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.net.SocketException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a server has proved, for how long, and what an answer that was overtaken proves: nothing (BAR-33). */
@ExtendWith(AntipodeIsolated.class)
class ProofsTest {
  /** A server whose data are replaced while its answer is on the way, so many times, as a push says. */
  private static final class Replaced extends Fake {
    final AtomicInteger times;

    /** What is true of the data that came in their place; until then whatever is asked for was there. */
    volatile Visibility after = Visibility.VISIBLE;

    Replaced(int times) {
      super("log-1", null);
      this.times = new AtomicInteger(times);
      answer = this::judge;
    }

    private List<Visibility> judge(List<WriteId> ids, Server server) throws InterruptedException {
      boolean before = times.getAndUpdate(left -> Math.max(0, left - 1)) > 0;
      Visibility said = before ? Visibility.VISIBLE : after;
      if (before) {
        Thread pushed = EngineTest.started(server::reset); // a channel's own thread
        EngineTest.join(pushed);
      }
      if (said.isVisible()) { // it comes only now
        server.applied("i1", "e1", Map.of("e1", 10L));
      }
      return Collections.nCopies(ids.size(), said);
    }
  }

  /** One with the store's own wait, which here comes back at once. */
  private static final class WaitingShim extends LogShim {
    @Override
    public Capabilities capabilities() {
      return super.capabilities().blockingWait(true);
    }

    @Override
    public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
      return visible(ids, server);
    }
  }

  /** How a store is asked, and for what. */
  enum Asked {
    POSITIONS(LogShim::new, at(5)),
    WAITS(WaitingShim::new, at(5)),
    OBJECTS(FakeShim::new, object("log", "k"));

    private final Supplier<Shim> shim;
    private final Lineage wanted;

    Asked(Supplier<Shim> shim, Lineage wanted) {
      this.shim = shim;
      this.wanted = wanted;
    }

    private void register(Replaced server) {
      FakeShim.store(shim, StoreOptions.named("log").replicas(server));
    }
  }

  /** BAR-63: not as old as the barrier that it serves, and none for who wants a later one. */
  @Test
  void whatAnEarlierQuestionProvedIsAsOldAsThatOne() {
    Antipode.configure(Settings.defaults().freePathTtl(LONG));
    ServerProofs proofs = new ServerProofs();
    proofs.begin();
    assertThat(proofs.applied("i1", "e1", Map.of("e1", 5L))).isTrue();
    Proof own = proofs.answered();
    assertThat(own.generation()).isEqualTo(1);
    logStore();
    PendingWait need = new WaitGroup(0, () -> { }).add(WriteId.position("log", "e1", 5), server());
    assertThat(proofs.kept(need, Ticks.now())).isEqualTo(new Proof(own.askedAt(), 1, true));
    need.freshFrom = own.askedAt() + 1;
    assertThat(proofs.kept(need, Ticks.now())).isNull();
  }

  /** BAR-33, EPOCH-15. */
  @ParameterizedTest
  @ValueSource(strings = {"instance", "epoch", "back"})
  void proofsAreDroppedWithAnotherInstanceOrEpochOrAStepBack(String change) {
    Antipode.configure(Settings.defaults().freePathTtl(LONG));
    Log log = logStore();
    log.applied = 10;
    assertThat(EngineTest.wait(at(10), LONG).satisfied()).isTrue();
    assertThat(server().holds("e1", 10, Ticks.now())).isTrue();
    switch (change) {
      case "instance" -> {
        log.instance = "i2";
        log.applied = 5;
      }
      case "epoch" -> {
        log.epoch = "e2";
        log.applied = 50;
      }
      default -> log.applied = 5;
    }
    EngineTest.wait(at(11), Duration.ofMillis(300));
    assertThat(server().holds("e1", 10, Ticks.now())).isFalse();
    assertThat(EngineTest.wait(at(10), Duration.ofMillis(50)).satisfied()).isFalse();
  }

  @Test
  void aServerThatBreaksOffLosesItsProofs() {
    Antipode.configure(Settings.defaults().freePathTtl(LONG));
    Log log = logStore();
    log.applied = 10;
    EngineTest.wait(at(10), LONG);
    FakeShim.Answer answer = log.answer;
    log.answer = (ids, server) -> {
      throw new SocketException("reset");
    };
    EngineTest.wait(at(11), Duration.ofMillis(300));
    assertThat(server().holds("e1", 10, Ticks.now())).isFalse();
    log.answer = answer;
    assertThat(EngineTest.wait(at(10), LONG).satisfied()).isTrue();
  }

  @ParameterizedTest
  @EnumSource
  void anAnswerThatWasOvertakenSettlesNobody(Asked asked) {
    Replaced replaced = new Replaced(1);
    replaced.after = Visibility.notYet("behind");
    asked.register(replaced);
    assertThat(EngineTest.wait(asked.wanted, Duration.ofMillis(300)).store("log").verdict()).isEqualTo(Verdict.TIMED_OUT);
    assertThat(replaced.times.get()).isZero();
    assertThat(server().holds("e1", 5, Ticks.now())).isFalse();
  }

  @ParameterizedTest
  @EnumSource
  void whatWasOvertakenIsAskedAgainAtOnce(Asked asked) {
    Antipode.configure(Settings.defaults().poll(Duration.ofSeconds(30)));
    Replaced replaced = new Replaced(1);
    asked.register(replaced);
    assertThat(EngineTest.wait(asked.wanted, LONG).satisfied()).isTrue();
    assertThat(replaced.asked.get()).as("or once more, by a poke that came late").isBetween(2, 3);
  }

  /** BAR-29. */
  @ParameterizedTest
  @EnumSource
  void whoOnlyLooksIsAnsweredByWhatWasAskedAgain(Asked asked) {
    Replaced replaced = new Replaced(1);
    asked.register(replaced);
    assertThat(EngineTest.wait(asked.wanted, Duration.ZERO).satisfied()).isTrue();
    assertThat(replaced.times.get()).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void aServerWhoseAnswersAreAllOvertakenIsAskedAtThePaceOfAPoll(Asked asked) {
    Antipode.configure(Settings.defaults().poll(Duration.ofMillis(20)));
    Replaced replaced = new Replaced(Integer.MAX_VALUE);
    asked.register(replaced);
    assertThat(EngineTest.wait(asked.wanted, Duration.ofSeconds(1)).satisfied()).isFalse();
    assertThat(replaced.asked.get()).as("two a poll, and the interval doubles").isBetween(2, 40);
    replaced.times.set(0);
    assertThat(EngineTest.wait(asked.wanted, LONG).satisfied()).isTrue();
  }

  @Test
  void anAnswerThatWasOvertakenProvesNothingForLater() {
    Antipode.configure(Settings.defaults().freePathTtl(LONG));
    Replaced replaced = new Replaced(0);
    Asked.POSITIONS.register(replaced);
    assertThat(EngineTest.wait(at(5), LONG).satisfied()).isTrue();
    assertThat(server().holds("e1", 5, Ticks.now())).isTrue();
    replaced.times.set(Integer.MAX_VALUE);
    server().reset();
    assertThat(EngineTest.wait(at(5), Duration.ofMillis(100)).satisfied()).isFalse();
    assertThat(server().holds("e1", 5, Ticks.now())).isFalse();
    replaced.times.set(0);
    assertThat(EngineTest.wait(at(5), LONG).satisfied()).isTrue();
    assertThat(server().holds("e1", 5, Ticks.now())).isTrue();
  }
}
