package dev.antipode.observer;

import java.util.concurrent.atomic.LongAdder;

/** How barriers end; counted by plain numbers, which an observable counter reads (OBS-9). */
public enum Outcome {
  /** Nothing had to be waited for. */
  FREE("free"),
  /** All was there in time. */
  SATISFIED("satisfied"),
  /** Something was not visible when the deadline passed. */
  TIMED_OUT("timed_out"),
  /** Something cannot be proved. */
  UNPROVEN("unproven"),
  /** Nothing could be judged. */
  VACUOUS("vacuous"),
  /** Something was left unjudged, and that was asked for. */
  INCOMPLETE("incomplete"),
  /** As many barriers waited as may. */
  OVERLOADED("overloaded");

  private final String word;
  private final LongAdder counted = new LongAdder();

  Outcome(String word) {
    this.word = word;
  }

  /** The same word in metrics and all languages. */
  public String word() {
    return word;
  }

  /** One more barrier ended so. */
  public void count() {
    counted.increment();
  }

  /** How many barriers ended so. */
  public long counted() {
    return counted.sum();
  }

  /** Counts from nothing (tests). */
  public static void reset() {
    for (Outcome outcome : values()) {
      outcome.counted.reset();
    }
  }
}
