package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Verdict;
import dev.antipode.postgresql.ServerState.Branch;
import dev.antipode.shim.Visibility;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.LongRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The proofs, without a server (EPOCH-28, EPOCH-29, EPOCH-9, EPOCH-10, EPOCH-12, EPOCH-14). */
class JudgingTest {
  private static final long SYSTEM = 7512345678901234567L;
  private static final History THIRD = new History(3, Map.of(1L, 1000L, 2L, 2000L));
  private static final Map<Branch, String> WORDS = Map.of(
      new Branch(SYSTEM, 1), "one", new Branch(SYSTEM, 2), "two", new Branch(SYSTEM, 3), "three");

  private static ServerState seen(long reached, History... histories) {
    return new ServerState(SYSTEM, true, reached, List.of(histories), WORDS, Map.of(), true, "", false);
  }

  private static ServerState without(ServerState seen, boolean fresh, boolean unique) {
    return new ServerState(
        SYSTEM, true, seen.reached(), seen.histories(), Map.of(), Map.of(), fresh, seen.whyHidden(), unique);
  }

  private static ServerState settled(ServerState seen, String epoch, long counter) {
    return new ServerState(SYSTEM, true, seen.reached(), seen.histories(), WORDS, Map.of(epoch, counter), true, "", false);
  }

  private static String name(long timeline, String word) {
    return new Epoch(SYSTEM, timeline, word).toString();
  }

  static Stream<Arguments> verdicts() {
    String foreign = new Epoch(5, 3, "three").toString();
    ServerState third = seen(2500, THIRD);
    ServerState second = seen(2500, new History(2, Map.of(1L, 5L)));
    return Stream.of(
        Arguments.of(name(3, "three"), 2500, third, Verdict.VISIBLE, ""),
        Arguments.of(name(3, "three"), 2501, third, Verdict.NOT_YET, "at 0/9C4"),
        Arguments.of(name(1, "one"), 1000, third, Verdict.VISIBLE, ""),
        Arguments.of(name(1, "one"), 1001, third, Verdict.UNPROVEN, "ended there at 0/3E8"),
        Arguments.of(name(2, "two"), 1500, seen(1200, THIRD), Verdict.NOT_YET, "at 0/4B0"),
        Arguments.of(name(4, "four"), 100, third, Verdict.NOT_YET, "wanted timeline 4"),
        Arguments.of(
            name(2, "two"),
            1200,
            seen(2500, new History(3, Map.of(1L, 1000L))),
            Verdict.UNPROVEN,
            "no part of the history"),
        Arguments.of(name(3, "other"), 2100, third, Verdict.UNPROVEN, "promoted apart"),
        Arguments.of(name(3, "three"), 2100, without(third, true, false), Verdict.UNPROVEN, "antipode init"),
        Arguments.of(name(3, "three"), 2100, without(third, false, false), Verdict.NOT_YET, ""),
        Arguments.of(name(3, "three"), 2600, without(third, true, false), Verdict.NOT_YET, ""),
        Arguments.of(foreign, 10, third, Verdict.NOT_YET, "another system"),
        Arguments.of(foreign, 10, settled(third, foreign, 10), Verdict.VISIBLE, ""),
        Arguments.of(
            name(1, ""), 10, without(seen(2500, History.of(1)), true, false), Verdict.VISIBLE, ""),
        Arguments.of(name(2, ""), 10, without(second, true, false), Verdict.UNPROVEN, "unique_timelines"),
        Arguments.of(name(2, ""), 10, without(second, true, true), Verdict.VISIBLE, ""),
        Arguments.of(name(2, ""), 10, second, Verdict.UNPROVEN, "before the table"),
        Arguments.of(
            name(1, "one"),
            10,
            new ServerState(SYSTEM, true, 20, List.of(), WORDS, Map.of(), true, "no right", false),
            Verdict.UNPROVEN,
            "no right"),
        // The receiver is down: it may be on its last known timeline, or on another one that it has heard of.
        Arguments.of(name(1, "one"), 900, seen(2500, History.of(1), THIRD), Verdict.VISIBLE, ""),
        Arguments.of(name(1, "one"), 1001, seen(2500, History.of(1), THIRD), Verdict.NOT_YET, "receiver is down"),
        Arguments.of(name(3, "three"), 2100, seen(2500, History.of(1), THIRD), Verdict.NOT_YET, "timeline 3"),
        Arguments.of("no epoch of ours", 10, third, Verdict.UNPROVEN, "no epoch of PostgreSQL"));
  }

  @ParameterizedTest
  @MethodSource("verdicts")
  void verdict(String epoch, int wanted, ServerState look, Verdict verdict, String words) {
    Visibility answer = CommitJudge.judge(epoch, wanted, look);
    assertThat(answer.verdict()).as(answer.reason()).isEqualTo(verdict);
    assertThat(answer.reason()).contains(words);
  }

  @Provide
  Arbitrary<List<History>> histories() {
    return Arbitraries.of(
            History.of(1), new History(2, Map.of(1L, 1000L)), THIRD, new History(4, Map.of(1L, 700L)))
        .list()
        .ofMaxSize(3);
  }

  @Provide
  Arbitrary<String> epochs() {
    return Arbitraries.of(name(1, "one"), name(2, "two"), name(3, "three"), name(3, "x"), name(2, ""));
  }

  /** The free path and the judgement never differ on a pass (BAR-33, BAR-35). */
  @Property
  void whatIsProvedAtOnceIsWhatIsJudgedVisible(
      @ForAll @LongRange(max = 3000) long reached,
      @ForAll("histories") List<History> histories,
      @ForAll("epochs") String epoch,
      @ForAll @LongRange(max = 3000) long wanted) {
    ServerState look = seen(reached, histories.toArray(History[]::new));
    boolean isCovered = wanted <= look.proved().getOrDefault(epoch, -1L);
    assertThat(CommitJudge.judge(epoch, wanted, look).isVisible()).isEqualTo(isCovered);
  }

  @Test
  void epochsAndPositionsAreSpelledAndRead() {
    List<Epoch> epochs = new ArrayList<>(List.of(
        new Epoch(SYSTEM, 1, "abc123"), new Epoch(-1L, Integer.MAX_VALUE, "1234567"), new Epoch(1, 1, "")));
    for (Epoch epoch : epochs) {
      assertThat(Epoch.of(epoch.toString())).isEqualTo(epoch);
      assertThat(epoch.toString()).hasSizeLessThanOrEqualTo(32);
    }
    assertThat(Epoch.of("8371ab90c2d4e6f1")).isNull();
    assertThat(Lsn.parse("1/2A")).isEqualTo((1L << 32) + 42);
    assertThat(Lsn.text((1L << 32) + 42)).isEqualTo("1/2A");
    assertThat(Lsn.text(Lsn.parse("FFFFFFFF/FFFFFFFF"))).isEqualTo("FFFFFFFF/FFFFFFFF");
    History read = History.parse(3, "1\t0/3E8\tno recovery target specified\n\n2\t0/7D0\tbefore 2000-01-01\n");
    assertThat(read).isEqualTo(THIRD);
    assertThat(read.endOf(3)).hasValue(History.FOR_EVER);
    assertThat(read.endOf(4)).isEmpty();
    assertThat(new HashMap<>(seen(2500, THIRD).proved())).containsEntry(name(2, "two"), 2000L);
  }

  /** EPOCH-28: it had timeline 2's history from an archive; as PostgreSQL 15 wrote its own. */
  @Test
  void aStandbyThatWasPromotedBeforeItCameToTheForkLacksWhatIsBeyondItsOwnEnd() {
    History read = History.parse(3, "1\t0/33260C0\tno recovery target specified\n2\t0/3015FB0\tno recovery target specified\n");
    assertThat(read.ends()).containsOnly(Map.entry(1L, 0x3015FB0L), Map.entry(2L, 0x3015FB0L));
  }

  /** EPOCH-3, EPOCH-4: a record's end, though the insert position lies behind the next page's header. */
  @Test
  void aRecordsEndIsNotBehindTheNextPagesHeader() {
    long segment = 16 << 20;
    assertThat(Lsn.recordEnd(3 * 8192 + 24, segment)).isEqualTo(3 * 8192);
    assertThat(Lsn.recordEnd(segment + 40, segment)).isEqualTo(segment);
    assertThat(Lsn.recordEnd(segment + 41, segment)).isEqualTo(segment + 41);
    assertThat(new Place(1, 8192, 8192 + 24, "on").endsRecord(segment)).isTrue();
    assertThat(new Place(1, 8192, 9000, "on").endsRecord(segment)).isFalse();
    assertThat(new Place(1, 9000, 9001, "on").isAllFlushed(segment)).isFalse();
  }
}
