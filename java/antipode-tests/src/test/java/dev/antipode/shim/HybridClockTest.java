package dev.antipode.shim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.Size;

/** The laws of the hybrid clock, for any times and any counters (SHIM-24 to SHIM-29), and of the envelope (SHIM-34). */
class HybridClockTest {
  private static final Instant START = Instant.ofEpochSecond(1_700_000_000);

  private Instant now = START;

  @Provide
  Arbitrary<Long> steps() {
    return Arbitraries.longs().between(-1_000_000_000L, 1_000_000_000L);
  }

  /** SHIM-25, SHIM-27: counters grow and pass what was observed, whatever the time does; a forged one is refused. */
  @Property(tries = 300)
  void countersGrow(@ForAll @Size(max = 40) List<@From("steps") Long> steps, @ForAll List<Long> met) {
    now = START;
    HybridClock clock = HybridClock.ofNode(5, HybridClock.MAX_AHEAD, () -> now);
    HybridClock other = HybridClock.ofNode(6, HybridClock.MAX_AHEAD, () -> now.plusSeconds(30));
    Set<Long> given = new HashSet<>();
    long last = 0;
    int place = 0;
    for (long step : steps) {
      now = now.plusNanos(step);
      if (step % 3 == 0) {
        long seen = other.next();
        if (clock.observe(seen)) {
          last = Long.compareUnsigned(seen, last) > 0 ? seen : last;
        }
      } else if (step % 3 == 1 && place < met.size()) {
        long forged = met.get(place++);
        if (clock.observe(forged)) {
          last = Long.compareUnsigned(forged, last) > 0 ? forged : last;
        }
      }
      long next = clock.next();
      assertThat(Long.compareUnsigned(next, last)).isPositive();
      assertThat(next & 0x3FFF).isEqualTo(5);
      assertThat(given.add(next)).isTrue();
      assertThat(HybridClock.timeOf(next)).isBefore(now.plus(Duration.ofSeconds(70)));
      last = next;
    }
  }

  /** SHIM-28: just above a refused one, for its key alone. */
  @Property
  void aboveIsGreaterAndOfThisNode(@ForAll long counter) {
    HybridClock clock = HybridClock.ofNode(9, HybridClock.MAX_AHEAD, () -> START);
    clock.above(counter).ifPresentOrElse(
        above -> {
          assertThat(Long.compareUnsigned(above, counter)).isPositive();
          assertThat(above & 0x3FFF).isEqualTo(9);
        },
        () -> assertThat(counter >>> HybridClock.NODE_BITS).isEqualTo(-1L >>> HybridClock.NODE_BITS));
    assertThat(HybridClock.timeOf(clock.next())).isEqualTo(START);
  }

  /** SHIM-27: a counter far ahead is refused and counted, and the clock stays. */
  @Example
  void aForgedCounterIsRefused() {
    HybridClock clock = HybridClock.ofNode(1, HybridClock.MAX_AHEAD, () -> START);
    assertThat(clock.observe(-1L)).isFalse();
    assertThat(clock.refused()).isEqualTo(1);
    assertThat(HybridClock.timeOf(clock.next())).isEqualTo(START);
  }

  /** SHIM-29. */
  @Example
  void nodesAndPlaces() {
    assertThat(HybridClock.inPlace(200).node() >> 6).isEqualTo(200);
    assertThat(HybridClock.create().node()).isBetween(0, 16383);
    assertThatThrownBy(() -> HybridClock.inPlace(256)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> HybridClock.ofNode(-1)).isInstanceOf(IllegalArgumentException.class);
    assertThat(HybridClock.placeNumber("b")).isBetween(0, 255);
  }

  /** SHIM-34, SHIM-35: what is put in comes out, and no value is ever lost. */
  @Property(tries = 300)
  void envelopes(@ForAll @Size(max = 60) byte[] rest, @ForAll boolean like, @ForAll("texts") String text) {
    byte[] value = like ? Envelope.close(rest, "1") : rest;
    Envelope.OpenedEnvelope opened = Envelope.open(Envelope.close(value, text));
    assertThat(opened.value()).isEqualTo(value);
    assertThat(opened.text() == null ? "" : opened.text()).isEqualTo(text);
    assertThat(opened.fault()).isEmpty();
    byte[] cut = Arrays.copyOf(value, value.length / 2);
    Envelope.OpenedEnvelope broken = Envelope.open(cut);
    assertThat(!broken.fault().isEmpty() ? broken.value() : cut).isEqualTo(cut);
    assertThatThrownBy(() -> Envelope.close(rest, "é")).isInstanceOf(IllegalArgumentException.class);
  }

  @Provide
  Arbitrary<String> texts() {
    return Arbitraries.strings().withChars("1~.abc-_").ofMaxLength(500);
  }
}
