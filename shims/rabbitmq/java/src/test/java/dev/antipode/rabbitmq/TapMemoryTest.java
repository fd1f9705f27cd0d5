package dev.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What is remembered of a tap, and for how long. */
class TapMemoryTest {
  private static TapMemory.Place place(long offset, String looks) {
    return new TapMemory.Place(offset, looks);
  }

  @Test
  void marksAreForgottenInTheOrderInWhichTheyCame() {
    Marks marks = new Marks(3);
    Stream.of("a", "b", "a", "c", "d").forEach(marks::add);
    assertThat(Stream.of("a", "b", "c", "d").map(marks::contains)).containsExactly(false, true, true, true);
    assertThat(marks.size()).isEqualTo(3);
  }

  @Test
  void whoWaitsIsToldOnce() {
    TapMemory memory = new TapMemory(10);
    assertThat(memory.want("m")).isFalse();
    assertThat(memory.note("another")).isFalse();
    assertThat(memory.note("m")).isTrue();
    assertThat(memory.note("m")).isFalse();
    assertThat(memory.want("m")).isTrue();
    assertThat(memory.wanted()).isZero();
  }

  @Test
  void whatIsWantedIsBounded() {
    TapMemory memory = new TapMemory(10);
    for (int number = 0; number < 15_000; number++) {
      memory.want("never-" + number);
    }
    assertThat(memory.wanted()).isLessThanOrEqualTo(10_000);
  }

  @Test
  void readsOnFromWhereItWas() {
    TapMemory memory = new TapMemory(20);
    assertThat(memory.resume(place(100, "x"))).as("at first from the last that are remembered").isEqualTo(80);
    assertThat(memory.resume(place(5, "x"))).isZero();
    memory.read(place(90, "a"));
    memory.read(place(91, "b"));
    assertThat(memory.offset()).isEqualTo(91);
    assertThat(memory.resume(place(100, "x"))).as("the last chunk is further on").isEqualTo(91);
    assertThat(memory.isElsewhere(place(91, "b"))).isFalse();
    assertThat(memory.resume(place(90, "a"))).as("within the last chunk, from its beginning").isEqualTo(90);
  }

  @Test
  void aStreamThatIsNotTheSameIsReadAnew() {
    TapMemory memory = new TapMemory(20);
    memory.read(place(90, "a"));
    assertThat(memory.isElsewhere(place(90, "other"))).isTrue();
    assertThat(memory.resume(place(30, "other"))).as("the chunk is no place that was read").isEqualTo(10);
    assertThat(memory.offset()).isEqualTo(-1);
    assertThat(memory.isElsewhere(place(90, "other"))).isFalse();
  }
}
