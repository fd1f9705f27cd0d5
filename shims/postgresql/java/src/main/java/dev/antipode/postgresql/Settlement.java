package dev.antipode.postgresql;

import dev.antipode.Lineage;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.WriteId;
import dev.antipode.postgresql.PositionQuery.Answers;
import dev.antipode.shim.Write;
import org.postgresql.core.BaseConnection;

/** Finds the position of what one connection has committed, and records it; else the write is incomplete. */
final class Settlement {
  private final Binding binding;
  private final BaseConnection physical;
  private final KnownServer known;
  private final OpenWrite now;
  private final String unfit;
  private final Flushing flushing;

  /** {@code unfit}: why positions of the server prove nothing; empty where they do. */
  Settlement(Binding binding, BaseConnection physical, KnownServer known, OpenWrite now, String unfit) {
    this.binding = binding;
    this.physical = physical;
    this.known = known;
    this.now = now;
    this.unfit = unfit;
    this.flushing = new Flushing(physical, known, this::refused);
  }

  /**
   * The commit is done: its position joins the scope. Errors of our own questions end here.
   *
   * @param asynchronous whether it may not be flushed
   * @param saidSo whether that is the session's setting
   */
  void settle(Place first, boolean asynchronous, boolean saidSo) {
    boolean isFlushed = first != null && first.isAllFlushed(known.segment);
    if (saidSo && !isFlushed && !binding.flushesAsynchronous()) {
      incomplete("asynchronous", "it was committed with synchronous_commit = off, so a crash may lose it");
      return;
    }
    Place place = first != null ? flushing.bounded(first, asynchronous) : flushing.flush();
    if (place != null && (place.timeline() != known.timeline || known.epoch.isEmpty())) {
      known.learn(binding, physical, place.timeline());
      place = flushing.flush(); // behind the row of the epoch
    }
    if (now.write == null) {
      return;
    }
    if (place == null || known.epoch.isEmpty()) {
      incomplete("pending", "its position did not come");
    } else if (place.timeline() != known.timeline) {
      incomplete("pending", "the server was promoted behind the commit");
    } else {
      record(new Ordered(known.epoch, place.flushed()));
    }
  }

  /**
   * Behind what could not carry the question: nobody knows how it was committed, so that only counts which is flushed up to
   * the end of the log, or behind a flushed commit of nothing.
   */
  void apart() {
    Answers answers = PositionQuery.ask(physical, Questions.PLACE);
    if (answers.error() != null && !PositionQuery.isGone(physical, answers.error())) {
      refused(answers);
      return;
    }
    Place place = Place.of(answers.rows(0));
    if (place == null) {
      incomplete("pending", "the connection broke before its position came");
      return;
    }
    settle(place, true, place.synchronous().equals("off"));
  }

  private void record(Ordered position) {
    if (!unfit.isEmpty()) {
      incomplete("unfit", unfit);
      return;
    }
    boolean wrote = now.certain;
    now.end(write -> {
      if (wrote) {
        write.record(position);
      } else {
        write.recordUpperBound(position);
      }
    });
    Reading reading = Reading.current();
    if (reading != null) {
      reading.saw(Lineage.EMPTY, WriteId.position(binding.store().name(), position.epoch(), position.counter()));
    }
  }

  void incomplete(String reason, String detail) {
    now.end(write -> write.recordIncomplete(reason, detail));
  }

  void refused(Answers answers) {
    if (now.write == null) {
      return;
    }
    String words = answers.refusal();
    if (words.contains("recovery") && !now.certain) {
      now.end(Write::abandon); // a function that was called at a standby, which takes no writes
      return;
    }
    if (answers.isCancelled()) {
      incomplete("pending", "the question for its position was cancelled: " + words);
      return;
    }
    binding.say("AP506", "rights", "a write to " + binding.store().name() + " is recorded as incomplete: " + words);
    incomplete("rights", words);
  }
}
