package dev.antipode.postgresql;

import dev.antipode.postgresql.PositionQuery.Answers;
import java.util.function.Consumer;
import org.postgresql.core.BaseConnection;

/** Finds the place in the log that covers a commit of one connection, and is flushed (EPOCH-1). */
final class Flushing {
  private static final int MOST_TURNS = 3;

  private final BaseConnection physical;
  private final KnownServer known;
  private final Consumer<Answers> refused;

  /** {@code refused} hears what the server refuses to say. */
  Flushing(BaseConnection physical, KnownServer known, Consumer<Answers> refused) {
    this.physical = physical;
    this.known = known;
    this.refused = refused;
  }

  /**
   * Return the least position that covers the commit, and that is flushed.
   *
   * @param asynchronous whether the commit may not be flushed
   */
  Place bounded(Place place, boolean asynchronous) {
    if (asynchronous ? place.isAllFlushed(known.segment) : place.endsRecord(known.segment)) {
      return place;
    }
    Place flushed = flush();
    if (flushed == null || known.segment == 0 || flushed.timeline() != place.timeline()) {
      return flushed;
    }
    return asynchronous ? place.at(place.end(known.segment)) : place;
  }

  /** Return the place behind a flushed commit of nothing; null where it did not come. */
  Place flush() {
    Place place = null;
    for (int turn = 0; turn < MOST_TURNS; turn++) {
      Answers answers = PositionQuery.ask(physical, Questions.FLUSH);
      if (answers.error() != null) {
        if (!PositionQuery.isIdle(physical) && !PositionQuery.isGone(physical, answers.error())) {
          PositionQuery.ask(physical, "ROLLBACK");
        }
        if (!PositionQuery.isGone(physical, answers.error())) {
          refused.accept(answers);
        }
        return null;
      }
      place = Place.of(answers.rows(1));
      if (place == null || place.endsRecord(known.segment)) {
        break;
      }
    }
    return place;
  }
}
