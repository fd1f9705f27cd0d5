package dev.antipode.redis;

import dev.antipode.Lineage;
import dev.antipode.WriteId;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/** The reads of a batch or a transaction. Those that are alike are one: they wait, collect and fail together. */
final class ReadCalls {
  private final List<ReadCall> calls = new ArrayList<>();

  /**
   * What a read of the batch has to do besides; null where it is a plain one.
   *
   * @param first told a read that is like none before, before it counts
   */
  ReadCall of(Binding binding, Consumer<ReadCall> first) {
    ReadCall own = binding.records() ? ReadCall.of(binding) : null;
    if (own == null) {
      return null;
    }
    for (ReadCall each : calls) {
      if (each.isLike(own)) {
        return each;
      }
    }
    first.accept(own);
    calls.add(own);
    return own;
  }

  boolean isEmpty() {
    return calls.isEmpty();
  }

  /** The position that they put into lineages; null for none. */
  WriteId covers() {
    return calls.stream().map(ReadCall::covers).filter(Objects::nonNull).findFirst().orElse(null);
  }

  boolean collects() {
    return calls.stream().anyMatch(ReadCall::collects);
  }

  void forEach(Consumer<ReadCall> action) {
    calls.forEach(action);
  }

  /** Forgets them, for the next batch. */
  void clear() {
    calls.clear();
  }

  /** All were answered behind this answer to the question, or before it. */
  void saw(Object answerToQuestion) {
    Replication now = Looks.parsed(answerToQuestion);
    calls.stream().filter(ReadCall::collects).forEach(each -> each.saw(now, Lineage.EMPTY));
  }

  /** They are over; the first that waited in vain says so, as the policies have it. */
  void finish() {
    RuntimeException first = null;
    for (ReadCall each : calls) {
      try {
        each.finish();
      } catch (RuntimeException inVain) {
        first = first == null ? inVain : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
