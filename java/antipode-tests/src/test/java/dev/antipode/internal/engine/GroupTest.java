package dev.antipode.internal.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Visibility;
import dev.antipode.testing.AntipodeIsolated;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How a barrier ends, step by step, as threads take it (BAR-63; {@code spec/tla/Reopen.tla}). */
@ExtendWith(AntipodeIsolated.class)
class GroupTest {
  private static final WriteId POSITION = WriteId.position("log", "e1", 5);
  private static final long LATER = TimeUnit.SECONDS.toNanos(10); // more than the free path's

  /** A server of which only the generation counts. */
  private static class Parking extends ServerEngine {
    int generation;
    final List<PendingWait> parked = new ArrayList<>();
    Runnable meanwhile;

    Parking() {
      super(null, "parking", null);
    }

    @Override
    int generation() {
      return generation;
    }

    @Override
    boolean park(PendingWait need) {
      parked.add(need);
      if (meanwhile != null) {
        meanwhile.run();
      }
      return false;
    }
  }

  private final Parking first = new Parking();
  private final Parking second = new Parking();
  private final long now = Ticks.now();
  private int released;

  private WaitGroup group(boolean follows, Parking... servers) {
    WaitGroup group = new WaitGroup(TimeUnit.SECONDS.toNanos(1), () -> released++, follows);
    for (Parking each : servers) {
      group.add(POSITION, each);
    }
    assertThat(group.parked()).isTrue();
    return group;
  }

  private WaitGroup group() {
    return group(false, first, second);
  }

  /** Settles a need as visible; whoever settles the last one looks if all stand. */
  private static boolean settle(WaitGroup group, int number, Proof proof) {
    return group.settle(group.needs.get(number), Visibility.VISIBLE, proof);
  }

  private static void settleAndLook(WaitGroup group, int number, Proof proof) {
    assertThat(settle(group, number, proof)).isTrue();
    WaitGroup.releaseAll(List.of(group));
  }

  private static Proof proof(long askedAt, int generation) {
    return new Proof(askedAt, generation, false);
  }

  /** BAR-63: all is settled, nobody has looked yet if it stands, and the deadline comes. */
  @Test
  void theDeadlineLooksForItself() {
    WaitGroup group = group();
    assertThat(settle(group, 0, proof(now, 0))).isFalse();
    first.generation++;
    assertThat(settle(group, 1, proof(now, 0))).isTrue();
    assertThat(group.end()).containsExactly(group.needs.get(0));
    assertThat(group.needs).extracting(need -> need.answer.verdict()).containsExactly(Verdict.NOT_YET, Verdict.VISIBLE);
    WaitGroup.releaseAll(List.of(group));
    assertThat(released).as("nobody is woken behind it").isZero();
  }

  /** BAR-32, BAR-41: those behind it would wait until their deadline. */
  @Test
  void aReleaseThatFailsHoldsNoOtherUp() {
    List<String> woken = new ArrayList<>();
    WaitGroup failing = new WaitGroup(TimeUnit.SECONDS.toNanos(1), () -> {
      throw new OutOfMemoryError("the first");
    });
    WaitGroup refusing = new WaitGroup(TimeUnit.SECONDS.toNanos(1), () -> {
      throw new IllegalStateException("the second");
    });
    WaitGroup behind = new WaitGroup(TimeUnit.SECONDS.toNanos(1), () -> woken.add("behind"));
    List<WaitGroup> all = List.of(failing, refusing, behind);
    for (WaitGroup group : all) {
      group.add(POSITION, first);
      assertThat(group.parked()).isTrue();
      assertThat(settle(group, 0, proof(now, 0))).isTrue();
    }
    assertThatThrownBy(() -> WaitGroup.releaseAll(all)).isInstanceOf(OutOfMemoryError.class).hasMessage("the first");
    assertThat(woken).containsExactly("behind");
    assertThatThrownBy(() -> WaitGroup.releaseAll(List.of(refusing))).isInstanceOf(IllegalStateException.class);
  }

  /** BAR-63: what stood when the barrier was released does not change when its caller ends it. */
  @Test
  void whatStoodOnceIsNotLookedAtAgain() {
    WaitGroup group = group();
    settle(group, 0, proof(now, 0));
    settleAndLook(group, 1, proof(now, 0));
    assertThat(released).isEqualTo(1);
    first.generation++;
    assertThat(group.end()).isEmpty();
    assertThat(group.needs).allMatch(PendingWait::isVisible);
  }

  /** BAR-63: nobody would look if it stands. */
  @Test
  void whatComesBehindTheDeadlineChangesNothing() {
    WaitGroup group = group();
    for (PendingWait need : group.end()) {
      assertThat(group.settle(need, Visibility.VISIBLE, proof(now, 0))).isFalse();
      assertThat(need.isDone()).isTrue();
      assertThat(need.answer).isNull();
    }
  }

  /** BAR-63, Reopen.tla: the copy is compared, and the moment is another one. */
  @Test
  void whatDoesNotStandIsOpenedOnceAndAskedForAtOnce() {
    WaitGroup group = group();
    settle(group, 0, proof(now, 0));
    first.generation++;
    settleAndLook(group, 1, proof(now, 0));
    assertThat(first.parked).containsExactly(group.needs.get(0));
    assertThat(second.parked).isEmpty();
    assertThat(group.needs.get(0).repeats).as("its data may be others").isFalse();
    settleAndLook(group, 0, proof(now + LATER, 1));
    assertThat(second.parked).as("its proof is older than the moment allows").containsExactly(group.needs.get(1));
    assertThat(group.needs.get(1).repeats).isTrue();
    assertThat(released).isZero();
    settleAndLook(group, 1, proof(now + LATER - EngineSettings.now().freePathTtl() / 2, 0));
    assertThat(released).isEqualTo(1);
    WaitGroup.releaseAll(List.of(group));
    assertThat(released).as("whoever comes first releases").isEqualTo(1);
  }

  /** BAR-63: it was asked for again only for its age, and the answer is of other data: that is another moment. */
  @Test
  void whatOtherDataShowHasAnotherMoment() {
    WaitGroup group = group();
    settle(group, 0, proof(now, 0));
    settleAndLook(group, 1, proof(now + LATER, 0));
    assertThat(group.needs.get(0).repeats).isTrue();
    first.generation++;
    settleAndLook(group, 0, proof(now + 3 * LATER, 1));
    assertThat(second.parked).containsExactly(group.needs.get(1));
    assertThat(released).isZero();
  }

  /** BAR-63: the one that was opened first is settled again, and its thread looks, before the other one is opened. */
  @Test
  void twoThreadsThatLookAtOnceOpenANeedOnce() {
    WaitGroup group = group();
    settle(group, 0, proof(now, 0));
    assertThat(settle(group, 1, proof(now, 0))).isTrue();
    first.generation = 1;
    second.generation = 1;
    first.meanwhile = () -> settleAndLook(group, 0, proof(now, 1));
    WaitGroup.releaseAll(List.of(group));
    assertThat(second.parked).containsExactly(group.needs.get(1));
    assertThat(released).isZero();
    settleAndLook(group, 1, proof(now, 1));
    assertThat(released).isEqualTo(1);
  }

  /** BAR-63: all stood, the server is reset, and before it is told another thread looks and opens the need. */
  @Test
  void whatAnotherThreadOpenedMeanwhileIsNotReleased() {
    Parking slow = new Parking() {
      @Override
      int generation() {
        if (meanwhile != null) {
          Runnable once = meanwhile;
          meanwhile = null;
          once.run();
          return 0; // as it was before
        }
        return super.generation();
      }
    };
    WaitGroup group = group(false, slow, second);
    settle(group, 0, proof(now, 0));
    assertThat(settle(group, 1, proof(now, 0))).isTrue();
    slow.meanwhile = () -> {
      slow.generation++;
      slow.meanwhile = null;
      WaitGroup.releaseAll(List.of(group));
    };
    WaitGroup.releaseAll(List.of(group));
    assertThat(slow.parked).containsExactly(group.needs.get(0));
    assertThat(released).isZero();
    settleAndLook(group, 0, proof(now, 1));
    assertThat(released).isEqualTo(1);
  }

  /** BAR-63: what was settled again meanwhile is not what the copy showed to be stale. */
  @Test
  void whatWasSettledAgainIsNotOpenedByAnOldCopy() {
    Parking third = new Parking();
    WaitGroup group = group(false, first, second, third);
    for (int number = 0; number < 2; number++) {
      settle(group, number, proof(now, 0));
    }
    assertThat(settle(group, 2, proof(now, 0))).isTrue();
    first.generation++;
    second.generation++;
    third.generation++;
    first.meanwhile = () -> settleAndLook(group, 0, proof(now, 1));
    second.meanwhile = () -> settleAndLook(group, 1, proof(now, 1));
    WaitGroup.releaseAll(List.of(group));
    assertThat(List.of(first.parked, second.parked, third.parked)).allMatch(each -> each.size() == 1);
    settleAndLook(group, 2, proof(now, 1));
    assertThat(released).isEqualTo(1);
  }

  /** BAR-63: where the last one was settled by what others had asked for, the moment is now, and its age is that one's. */
  @Test
  void whatIsSettledByAKeptProofHasNowAsItsMoment() {
    long ttl = EngineSettings.now().freePathTtl();
    WaitGroup group = group();
    settle(group, 0, proof(Ticks.now() - ttl - ttl / 2, 0));
    settleAndLook(group, 1, new Proof(Ticks.now() - ttl / 4 * 3, 0, true));
    assertThat(first.parked).containsExactly(group.needs.get(0));
    assertThat(released).isZero();
  }

  /** BAR-63: a deadline that comes between the opening and the parking gives the need up. */
  @Test
  void whatWasOpenedAndNotParkedYetIsGivenUp() {
    WaitGroup group = group();
    settle(group, 0, proof(now, 0));
    first.generation++;
    List<PendingWait> open = new ArrayList<>();
    group.needs.get(0).parked = true;
    second.generation++;
    first.meanwhile = () -> open.addAll(group.end());
    settleAndLook(group, 1, proof(now, 0));
    assertThat(second.parked).as("nothing is opened behind the end").isEmpty();
    assertThat(open).containsExactly(group.needs.get(0), group.needs.get(1));
    assertThat(open.get(0).parked).as("no server counts it").isFalse();
    assertThat(open.get(0).answer).isNull();
  }

  /** BAR-63, REC-13: nobody relies on a record. */
  @Test
  void whatOnlyFollowsIsNotCompared() {
    WaitGroup group = group(true, first, second);
    settle(group, 0, proof(now, 0));
    first.generation++;
    settleAndLook(group, 1, proof(now, 0));
    assertThat(released).isEqualTo(1);
    assertThat(first.parked).isEmpty();
  }

  /** BAR-53, BAR-63: the servers that were named stand for what waited to know them. */
  @Test
  void whatWasDividedNeedsNoProof() {
    WaitGroup group = group(false, first);
    assertThat(group.divide(group.needs.get(0), List.of(second))).hasSize(1);
    assertThat(group.settle(group.needs.get(0), Visibility.VISIBLE)).isFalse();
    first.generation++;
    settleAndLook(group, 1, proof(Ticks.now() + LATER, 0));
    assertThat(released).isEqualTo(1);
    assertThat(first.parked).isEmpty();
  }

  /** BAR-53, BAR-64: one server that was named is one server. */
  @Test
  void aServerAloneThatWasNamedIsNotAskedTwice() {
    WaitGroup group = group(false, first);
    group.looksTwice = true;
    group.divide(group.needs.get(0), List.of(second));
    group.settle(group.needs.get(0), Visibility.VISIBLE);
    settleAndLook(group, 1, proof(now, 0));
    assertThat(released).isEqualTo(1);
  }
}
