package dev.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What is remembered of statements' texts: little. */
class MemoTest {
  private final AtomicInteger judged = new AtomicInteger();
  private final Memo<Integer> memo = new Memo<>(text -> {
    judged.incrementAndGet();
    return text.length();
  });

  @Test
  void aTextIsJudgedOnce() {
    assertThat(memo.of("SELECT 1")).isEqualTo(8);
    assertThat(memo.of("SELECT 1")).isEqualTo(8);
    assertThat(judged).hasValue(1);
  }

  @Test
  void itHoldsNoMoreThanItMay() {
    for (int number = 0; number <= Memo.MOST_KEPT; number++) {
      memo.of("SELECT " + number);
    }
    assertThat(memo.size()).isOne();
    assertThat(memo.of("x".repeat(Memo.LONGEST_KEPT))).isEqualTo(Memo.LONGEST_KEPT);
    assertThat(memo.size()).isOne();
  }
}
