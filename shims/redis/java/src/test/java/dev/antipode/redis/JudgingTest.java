package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Lineage;
import dev.antipode.Order;
import dev.antipode.Ordered;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Visibility;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What one look proves (EPOCH-9 to EPOCH-14), and how it is read (EPOCH-1, EPOCH-2). */
class JudgingTest {
  private static final String HERE = "aaaaaaaaaaaaaaaa";
  private static final String OLD = "bbbbbbbbbbbbbbbb";

  private static Replication at(long offset, String before, long beforeEnd) {
    return new Replication(false, HERE, offset, before, beforeEnd, true, true, true);
  }

  private static Visibility judge(String epoch, long counter, ServerState seen) {
    return seen.judge(WriteId.position("s", epoch, counter));
  }

  @Test
  void currentEpochByItsOffset_EPOCH_9() {
    ServerState seen = ServerState.of(at(100, "", 0), Map.of());
    assertThat(judge(HERE, 100, seen).isVisible()).isTrue();
    Visibility behind = judge(HERE, 101, seen);
    assertThat(behind.isVisible() || behind.isUnproven() || behind.unknownEpoch()).isFalse();
    assertThat(behind.reason()).isEqualTo("at aaaa….100, wanted 101");
  }

  @Test
  void otherEpochsByMarksOrTheHistoryBefore_EPOCH_10() {
    ServerState seen = ServerState.of(at(100, OLD, 51), Map.of("cccccccccccccccc", 30L));
    assertThat(judge(OLD, 50, seen).isVisible()).isTrue();
    assertThat(judge(OLD, 51, seen).isVisible()).isFalse();
    assertThat(judge("cccccccccccccccc", 30, seen).isVisible()).isTrue();
    assertThat(judge("cccccccccccccccc", 31, seen).isVisible()).isFalse();
  }

  @Test
  void endedOnlyWithAMarkOfTheOwnEpoch_EPOCH_11() {
    assertThat(judge(OLD, 51, ServerState.of(at(100, "", 0), Map.of(OLD, 50L))).isUnproven()).isFalse();
    Visibility ended = judge(OLD, 51, ServerState.of(at(100, "", 0), Map.of(OLD, 50L, HERE, 60L)));
    assertThat(ended.isUnproven()).isTrue();
    assertThat(ended.reason()).contains("bbbb… has ended there at 50, wanted 51: it may be lost");
    assertThat(ended.kind()).isEqualTo(UnprovenKind.HISTORY);
  }

  @Test
  void unknownEpochsAreNotYet_EPOCH_12() {
    Visibility answer = judge(OLD, 1, ServerState.of(at(100, "", 0), Map.of(HERE, 60L)));
    assertThat(answer.unknownEpoch()).isTrue();
    assertThat(answer.isUnproven()).isFalse();
  }

  @Test
  void numbersOfOtherEpochsAreNeverCompared_EPOCH_14() {
    assertThat(judge(OLD, 1, ServerState.of(at(Long.MAX_VALUE, "", 0), Map.of())).isVisible()).isFalse();
  }

  @Test
  void epochsHaveNoOrder_EPOCH_8() {
    // Neither a name that sorts before the server's own nor one that sorts behind it says anything of the other.
    for (String other : new String[] {"0000000000000000", "ffffffffffffffff", HERE.toUpperCase(), HERE.substring(1)}) {
      Visibility answer = judge(other, 1, ServerState.of(at(100, "", 0), Map.of()));
      assertThat(answer.isVisible()).as(other).isFalse();
      assertThat(answer.unknownEpoch()).as(other).isTrue();
    }
    Ordered early = new Ordered("0000000000000000", 7);
    Ordered late = new Ordered("ffffffffffffffff", 7);
    Lineage both = Lineage.of(WriteId.position("s", early.epoch(), 7)).including(WriteId.position("s", late.epoch(), 9));
    assertThat(both.ofStore("s")).hasSize(2); // neither stands for the other
    assertThat(Lineage.of(WriteId.position("s", early.epoch(), 7))
            .compare(Lineage.of(WriteId.position("s", late.epoch(), 7))))
        .isEqualTo(Order.CONCURRENT);
  }

  @Test
  void aSettledEpochIsAllThere_EPOCH_24() {
    byte[] settled = "18446744073709551615 7".getBytes(StandardCharsets.US_ASCII);
    ServerState seen = ServerState.of(at(100, "", 0), Map.of(OLD, Marks.positionOf(settled)));
    assertThat(judge(OLD, -1, seen).isVisible()).isTrue();
    assertThat(judge(OLD, Long.MAX_VALUE, seen).isVisible()).isTrue();
  }

  @Test
  void objectsAreNoPositions() {
    ServerState seen = ServerState.of(at(100, "", 0), Map.of());
    assertThat(seen.judge(new WriteId("s", "k", new Ordered("", 1))).isUnproven()).isTrue();
  }

  private static byte[] answer(String role, String more) {
    String text = "# Replication\r\nrole:" + role + "\r\nconnected_slaves:1\r\n" + more
        + "master_failover_state:no-failover\r\nmaster_replid:0123456789abcdef0123456789abcdef01234567\r\n"
        + "master_replid2:fedcba9876543210fedcba9876543210fedcba98\r\nmaster_repl_offset:4711\r\n"
        + "second_repl_offset:100\r\nrepl_backlog_active:1\r\nrepl_backlog_size:1048576\r\n";
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  @Test
  void readsPositionsOfPrimariesAndReplicas() {
    assertThat(Replication.positionOfPrimary(answer("master", ""))).isEqualTo(new Ordered("0123456789abcdef", 4711));
    Replication primary = Replication.parse(answer("master", ""));
    assertThat(primary.before()).isEqualTo("fedcba9876543210");
    assertThat(primary.beforeEnd()).isEqualTo(100);
    byte[] replica = answer("slave", "master_link_status:down\r\nslave_repl_offset:163\r\nslave_read_only:1\r\n");
    assertThat(Replication.positionOfPrimary(replica)).isNull();
    assertThat(Replication.parse(replica).offset()).isEqualTo(163); // ROLE would say -1 (traps 2)
    assertThat(Replication.parse(replica).link()).isFalse();
    assertThatThrownBy(() -> Replication.parse("QUEUED")).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void withoutABacklogThereIsNoPosition_EPOCH_5() {
    byte[] still = Replication.text(answer("master", "")).replace("active:1", "active:0")
        .getBytes(StandardCharsets.US_ASCII);
    assertThat(Replication.positionOfPrimary(still)).isNull();
    assertThat(Replication.parse(still).position()).isNull();
  }

  /** A full copy that failed behind its flush leaves the word, and takes the data and the backlog. */
  @Test
  void theHistoryBeforeIsBelievedWhileThereIsABacklog_EPOCH_33() {
    String said = "role:master\r\nmaster_replid:%s\r\nmaster_replid2:%s\r\nmaster_repl_offset:50\r\n"
        .formatted(HERE, OLD) + "second_repl_offset:51\r\nrepl_backlog_active:%d\r\n";
    assertThat(judge(OLD, 50, ServerState.of(Replication.parse(said.formatted(1)), Map.of())).isVisible()).isTrue();
    assertThat(judge(OLD, 50, ServerState.of(Replication.parse(said.formatted(0)), Map.of())).isVisible()).isFalse();
    assertThat(ServerState.of(Replication.parse(said.formatted(0)), Map.of()).proved()).doesNotContainKey(OLD);
  }
}
