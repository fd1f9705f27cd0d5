package dev.antipode.internal.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Lineage;
import dev.antipode.WriteId;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Raising a position in a closed text gives what opening it gives (WIRE-24, LIN-7). */
class PlainTextTest {
  private static final List<String> STORES = List.of("a", "a-b", "ab", "b", "blog-posts", "Z", "with_underscore");
  private static final List<String> EPOCHS = List.of("e", "e-1", "8371ab90c2d4e6f1");
  private static final long[] COUNTERS = {0, 1, 9, 10, 1042, Long.MAX_VALUE, Long.MIN_VALUE, -1L};

  @Test
  void onlyCanonicalTextsOfPlainPositionsAreTaken() {
    for (String plain : List.of(
        "1", "1~s..e.0", "1~s..e.18446744073709551615", "1~a-b..e.1~a..e.1", "1~a..e.1~b..f.2~c..e.3")) {
      assertThat(PlainText.isPlain(plain)).as(plain).isTrue();
      assertThat(Lineage.deserialize(plain).serialize()).isEqualTo(plain);
    }
    for (String other : List.of(
        "", "2", "1~", "1~s", "1~s..e.1~", "1~s..e.1 ", "1~s..e.05", "1~s..e.18446744073709551616", "1~s...1",
        "1~s.k.e.1", "1~s..e.1..f.2", "1~s..e.1~s..f.2", "1~s..e.1~s..e.1", "1~a..e.1~a-b..e.1", "1~b..e.1~a..e.1",
        "1~s..e.1~_.i", "1~s_5F..e.1", "1~s..e_5F.1", "1~s..e.1~_.x", "1~s..e.", "1~s..e", "1~s.._.x",
        "1~" + "s".repeat(64) + "..e.1", "1~s.." + "e".repeat(33) + ".1")) {
      assertThat(PlainText.isPlain(other)).as(other).isFalse();
    }
  }

  /** Against the same lineage built from its writes, whose sections are opened. */
  @Test
  void raisingGivesWhatOpeningGives() {
    Random chance = new Random(7);
    for (int round = 0; round < 3000; round++) {
      WriteId[] ids =
          IntStream.range(0, chance.nextInt(6)).mapToObj(number -> position(chance)).toArray(WriteId[]::new);
      Lineage opened = Lineage.of(ids);
      Lineage closed = Lineage.deserialize(opened.serialize());
      for (int writes = 0; writes < 4; writes++) {
        WriteId next = position(chance);
        opened = opened.including(List.of(next));
        closed = closed.including(next);
        assertThat(closed.serialize()).isEqualTo(opened.serialize());
        assertThat(closed).isEqualTo(opened).hasSameHashCodeAs(opened);
        assertThat(closed.ids()).isEqualTo(opened.ids());
        assertThat(closed.stores()).isEqualTo(opened.stores());
        for (String store : STORES) {
          assertThat(closed.ofStore(store)).isEqualTo(opened.ofStore(store));
          assertThat(closed.sectionText(store)).isEqualTo(opened.sectionText(store));
          assertThat(closed.onlyPosition(store, "e")).isEqualTo(opened.onlyPosition(store, "e"));
        }
        assertThat(closed.isEmpty()).isEqualTo(opened.isEmpty());
        assertThat(closed.hasContent()).isEqualTo(opened.hasContent());
        assertThat(closed.isComplete()).isTrue();
      }
    }
  }

  private static WriteId position(Random chance) {
    return WriteId.position(
        STORES.get(chance.nextInt(STORES.size())),
        EPOCHS.get(chance.nextInt(EPOCHS.size())),
        COUNTERS[chance.nextInt(COUNTERS.length)]);
  }

  /** WIRE-37: what no reader would take is not written, however often it was raised. */
  @Test
  void aTextThatGrowsByItsCountersStaysWithinTheLimits() {
    Lineage lineage = Lineage.of(IntStream.range(100, 360).mapToObj(n -> WriteId.position("s" + n, "e", 1)).toList());
    Lineage closed = Lineage.deserialize(lineage.serialize());
    for (int number = 100; number < 360; number++) {
      closed = closed.including(WriteId.position("s" + number, "e", -1L));
    }
    assertThat(closed.serialize().length()).isLessThanOrEqualTo(WireForm.MAX_BYTES);
    assertThat(Lineage.deserialize(closed.serialize()).incomplete()).isNotEmpty();
  }
}
