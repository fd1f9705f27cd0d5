package dev.antipode.redis;

import dev.antipode.BarrierException;
import dev.antipode.Lineage;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/** The reads of a batch or a transaction. Those that are alike are one: they wait, collect and fail together. */
final class ReadCalls {
  private final List<ReadCall> calls = new ArrayList<>();
  private boolean areAny; // plain ones, too
  private ReadCall sending; // what waits and collects as who sends them does; null where nobody does

  /**
   * What a read of the batch has to do besides; null where it is a plain one.
   *
   * @param told whether dry-run and a recorded history are told of it by this
   */
  ReadCall of(Binding binding, boolean told) {
    areAny = true;
    for (ReadCall each : calls) {
      if (each != sending && each.isCallers(told)) {
        return each;
      }
    }
    ReadCall own = ReadCall.queued(binding, told);
    if (own != null) {
      calls.add(own);
    }
    return own;
  }

  /**
   * They are sent now: each waits for what its scope holds by now, and for what that of who sends them does (BAR-51). Who
   * sends them has their replies, and depends on them, too (SCOPE-24).
   *
   * @return the one that waits as who sends them has to; null where nothing has to
   * @throws BarrierException where they are not to be sent at all ({@link ReadCall#check})
   */
  ReadCall leave(Binding binding) {
    sending = areAny ? ReadCall.sending(binding) : null;
    if (sending != null && calls.stream().noneMatch(sending.collects() ? sending::isLike : sending::waitsLike)) {
      calls.add(sending);
    }
    calls.forEach(ReadCall::leaves);
    calls.forEach(ReadCall::check);
    return sending == null ? null : calls.stream().filter(sending::waitsLike).findFirst().orElse(null);
  }

  /** Return who takes what rests beside a read's value: who queued it, else who sent it; null for nobody. */
  ReadCall takerOf(ReadCall queued) {
    return queued == null && calls.contains(sending) ? sending : queued;
  }

  /** Whether one of them has to wait. */
  boolean haveToWait() {
    return calls.stream().anyMatch(each -> !each.ids().isEmpty());
  }

  boolean isEmpty() {
    return calls.isEmpty();
  }

  boolean collects() {
    return calls.stream().anyMatch(ReadCall::collects);
  }

  void forEach(Consumer<ReadCall> action) {
    calls.forEach(action);
  }

  /** Forgets them, for the next batch. */
  void clear() {
    calls.forEach(ReadCall::failed); // where they were not over before
    calls.clear();
    sending = null;
    areAny = false;
  }

  /** All were answered behind this answer to the question, or before it. */
  void saw(Object answerToQuestion) {
    Replication now = Looks.parsed(answerToQuestion);
    calls.stream().filter(ReadCall::collects).forEach(each -> each.saw(now, Lineage.EMPTY));
  }

  /** They are over; the first that waited in vain says so, as the policies have it. */
  void finish() {
    if (calls.contains(sending)) {
      calls.stream().filter(each -> each != sending).forEach(sending::sawWith);
    }
    BarrierException first = calls.stream().map(ReadCall::inVain).filter(Objects::nonNull).findFirst().orElse(null);
    calls.forEach(each -> each.end(first, null, null));
    if (first != null) {
      throw first;
    }
  }
}
