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
  private boolean areAny; // plain ones, too

  /** What a read of the batch has to do besides; null where it is a plain one. */
  ReadCall of(Binding binding) {
    areAny = true;
    ReadCall own = binding.records() ? ReadCall.queued(binding) : null;
    if (own == null) {
      return null;
    }
    for (ReadCall each : calls) {
      if (each.isLike(own)) {
        return each;
      }
    }
    calls.add(own);
    return own;
  }

  /**
   * They are sent now: each waits for what its scope holds by now, and for what that of who sends them does (BAR-51).
   *
   * @return the one that waits as who sends them has to; null where nothing has to
   * @throws dev.antipode.BarrierException where they are not to be sent at all ({@link ReadCall#check})
   */
  ReadCall leave(Binding binding) {
    ReadCall sending = areAny && binding.records() ? ReadCall.sending(binding) : null;
    if (sending != null && calls.stream().noneMatch(sending::waitsLike)) {
      calls.add(sending);
    }
    calls.forEach(ReadCall::leaves);
    calls.forEach(ReadCall::check);
    return sending == null ? null : calls.stream().filter(sending::waitsLike).findFirst().orElse(null);
  }

  /** Whether one of them has to wait. */
  boolean haveToWait() {
    return calls.stream().anyMatch(each -> !each.ids().isEmpty());
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
    areAny = false;
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
