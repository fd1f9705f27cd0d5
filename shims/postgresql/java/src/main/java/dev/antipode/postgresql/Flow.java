package dev.antipode.postgresql;

import dev.antipode.LineageScope;
import dev.antipode.postgresql.PositionQuery.Answers;
import dev.antipode.shim.Write;
import java.sql.SQLException;
import java.util.Collection;
import org.postgresql.core.BaseConnection;

/**
 * One wrapped connection's transactions: a write is pending from its first statement that may write, until its end is
 * known. Used by one thread at a time, as the connection is.
 */
final class Flow {
  /** What the application does: a call of the client's own. */
  @FunctionalInterface
  interface Call<T> {
    T run() throws Throwable;
  }

  private final Binding binding;
  private final BaseConnection physical;
  private final KnownServer known;
  private final boolean isPlainChain;
  private final LineagePlacement beside;
  private final Settlement settling;

  private final OpenWrite now;

  /**
   * The transactions of a connection.
   *
   * @param physical the driver's own
   * @param unfit why its positions prove nothing; empty where they do
   * @param isPlainChain whether all between the application and the driver hands COMMIT on as it is
   */
  Flow(Binding binding, BaseConnection physical, String unfit, boolean isPlainChain) {
    this.binding = binding;
    this.physical = physical;
    this.known = KnownServer.of(physical);
    this.isPlainChain = isPlainChain;
    this.now = known.ongoing(binding.store());
    this.beside = new LineagePlacement(binding, physical, now);
    this.settling = new Settlement(binding, physical, known, now, unfit);
    takeOver();
  }

  private void takeOver() {
    if (!known.steps.begins()) {
      return; // another wrap of it is at work; the first step does the same
    }
    try {
      if (!PositionQuery.isIdle(physical)) {
        known.moments.isOpen();
      }
      if (now.isLeft) {
        goesOn();
      }
    } finally {
      known.steps.ends();
    }
  }

  /**
   * Before a step: what was open goes on, also what somebody left open on the connection (SCOPE-24, SCOPE-25), unless something
   * ended it meanwhile that nobody saw.
   */
  private void goesOn() {
    boolean wasLeft = now.isLeft;
    boolean wasEnded = now.isEnded;
    now.isLeft = now.isEnded = false;
    if (now.write == null) {
      return;
    }
    if (!PositionQuery.isIdle(physical)) {
      now.mayHaveCommitted |= wasLeft; // another one may have begun since, by a client that is not wrapped
    } else if (wasEnded) {
      settling.apart(); // by a commit or a rollback: a position covers both
    } else {
      now.end(Write::outcomeUnknown);
    }
  }

  Binding binding() {
    return binding;
  }

  BaseConnection physical() {
    return physical;
  }

  Steps steps() {
    return known.steps;
  }

  Moments moments() {
    return known.moments;
  }

  // A statement

  /**
   * Runs a statement, with what has to be done before and after it.
   *
   * @param text what is sent; null where nobody knows, or it is no text
   * @param several whether it may commit a part: where it fails, or where a transaction is open when it is done
   */
  <T> T run(Kind kind, String text, boolean several, Call<T> call) throws Throwable {
    binding.refreshed();
    if (!binding.records()) {
      return call.run();
    }
    return step(() -> sent(kind, text, several, call), call);
  }

  /** Does what no other thread's step may come between. */
  <T> T together(Call<T> call) throws Throwable {
    return known.steps.step(physical, call);
  }

  /** Does a step on the connection; {@code inner} is what is left of it within a step: a wrap within a wrap. */
  private <T> T step(Call<T> call, Call<T> inner) throws Throwable {
    return together(() -> {
      if (now.isBusy) {
        return inner.run();
      }
      now.isBusy = true;
      try {
        return call.run();
      } finally {
        now.isBusy = false;
      }
    });
  }

  private <T> T sent(Kind kind, String text, boolean several, Call<T> call) throws Throwable {
    boolean wasOpen = PositionQuery.isOpen(physical);
    begins(kind, text);
    now.mayBePrepared |= kind == Kind.MAYBE && PreparedWrites.mayPrepare(text);
    now.mayHaveCommitted |= several && kind == Kind.MAYBE;
    now.committing |= kind.mayCommit(); // stays where it fails: whoever asks then is told by the server, or in doubt
    T result = guarded(several ? Kind.MAYBE : kind, call);
    now.committing = false;
    if (kind == Kind.PREPARE && PositionQuery.isIdle(physical)) {
      now.end(write -> now.prepared.keep(text, write)); // pending until somebody commits it
    }
    finished(kind, wasOpen);
    return result;
  }

  /** Runs a part of what was begun: where it throws, what that means for the write. */
  <T> T guarded(Kind kind, Call<T> part) throws Throwable {
    try {
      return part.run();
    } catch (Throwable error) {
      failed(kind, error);
      beside.takeBack();
      throw error;
    }
  }

  /** A statement is about to be sent. */
  void begins(Kind kind, String text) throws SQLException {
    goesOn();
    if (PositionQuery.isIdle(physical)) {
      known.moments.transactionOver();
    } else {
      known.moments.isOpen();
    }
    known.moments.begins();
    beside.maySet(kind);
    if (kind.mayCommit()) {
      joinExecutor();
    }
    if (!kind.mayWrite()) {
      return;
    }
    Write write = now.write;
    if (write == null) {
      write = kind == Kind.END_PREPARED ? now.prepared.take(text) : null;
      now.alone = PositionQuery.isIdle(physical) && physical.getAutoCommit();
      now.certain = now.mayHaveCommitted = false;
    }
    if (write == null) {
      write = binding.store().begin();
    } else {
      write.joinScope();
    }
    now.write = write;
    if (kind == Kind.END_PREPARED) {
      now.alone = now.certain = true;
    }
    now.certain |= kind == Kind.WRITE;
    tell(kind, write);
  }

  /** A COPY was cancelled. */
  void cancelled() {
    beside.takeBack();
    if (PositionQuery.isIdle(physical)) {
      rolledBack();
    }
  }

  /** What is sent now is of these scopes, too. */
  void joinScopes(Collection<LineageScope> scopes) {
    Write write = now.write;
    if (write != null) {
      scopes.forEach(write::joinScope);
    }
  }

  /** The current scope sends what may end the transaction: the write is its own, too (SCOPE-24). */
  void joinExecutor() {
    Write write = now.write;
    if (write != null) {
      write.executedBy(LineageScope.current());
    }
  }

  /** What is to rest beside what is written next; where the server refuses that, nothing is. */
  private void tell(Kind kind, Write write) throws SQLException {
    try {
      beside.put(write, kind, now.alone);
    } catch (SQLException error) {
      failed(Kind.WRITE, error);
      throw error;
    }
  }

  /** A statement was done. */
  void finished(Kind kind, boolean wasOpen) {
    beside.takeBack();
    beside.maySet(kind);
    if (now.write == null || !PositionQuery.isIdle(physical)) {
      return;
    }
    if (now.mayBePrepared) {
      now.end(Write::outcomeUnknown); // it is pending until somebody ends it, who knows where
    } else if (kind == Kind.ROLLBACK || (kind == Kind.COMMIT && !wasOpen)) {
      rolledBack(); // a COMMIT of a transaction in error rolls it back
    } else {
      settling.apart();
    }
  }

  /** A statement ended with an error, or was given up. */
  void failed(Kind kind, Throwable error) {
    now.told = null;
    if (now.write == null) {
      return;
    }
    if (PositionQuery.isGone(physical, error)) {
      gone();
    } else if (PositionQuery.isIdle(physical)) {
      if (kind == Kind.MAYBE || kind == Kind.END_PREPARED) {
        settling.incomplete("pending", "it failed, and may have committed a part before");
      } else {
        rolledBack();
      }
    }
  }

  /** The connection is lost. What had not been told to commit is rolled back by the server. */
  private void gone() {
    boolean told = now.committing || now.alone || now.mayHaveCommitted;
    now.end(told ? Write::outcomeUnknown : Write::abandon);
  }

  /** The transaction is known not to have happened; what was committed within it has, and is covered (SCOPE-25). */
  void rolledBack() {
    if (now.write == null) {
      return;
    }
    if (!now.mayHaveCommitted) {
      now.end(Write::abandon);
      return;
    }
    now.mayHaveCommitted = false;
    if (!PositionQuery.isIdle(physical)) {
      PositionQuery.ask(physical, "ROLLBACK"); // the connection is given up, and whoever takes it does the same
    }
    if (PositionQuery.isGone(physical, null)) {
      now.end(Write::outcomeUnknown);
    } else {
      settling.apart();
    }
  }

  // The end of a transaction

  /** Commits, with the questions in the same round trip; {@code plain} is the client's own commit. */
  void commit(Call<?> plain) throws Throwable {
    step(() -> {
      committed(plain);
      return null;
    }, plain);
  }

  private void committed(Call<?> plain) throws Throwable {
    goesOn();
    if (now.write == null || !PositionQuery.isOpen(physical) || physical.getAutoCommit()) {
      boolean wasOpen = now.write != null && PositionQuery.isOpen(physical);
      plain.run();
      if (!wasOpen && PositionQuery.isIdle(physical)) {
        rolledBack();
      }
      return;
    }
    if (!isPlainChain) {
      commitApart(plain);
      return;
    }
    now.committing = true;
    joinExecutor();
    Answers answers = PositionQuery.ask(
        physical, (now.certain ? Questions.HOW : Questions.HOW_AND_WHETHER) + "; COMMIT; " + Questions.PLACE);
    now.committing = false;
    if (!answers.statuses().contains("COMMIT")) {
      notCommitted(answers, plain);
      return;
    }
    String[] how = answers.rows().get(0).get(0);
    if (how[1].equals("f")) {
      rolledBack(); // it only read
    } else if (answers.rows(1) != null) {
      boolean off = how[0].equals("off");
      settling.settle(Place.of(answers.rows(1)), off, off);
    } else if (PositionQuery.isGone(physical, answers.error())) {
      settling.incomplete("pending", "the connection broke before its position came");
    } else {
      settling.refused(answers);
    }
    plain.run(); // nothing is open any more, so this sends nothing: it is for who listens between
  }

  private void notCommitted(Answers answers, Call<?> plain) throws Throwable {
    if (answers.error() == null) { // the server turned it into a rollback
      rolledBack();
      plain.run();
      return;
    }
    if (PositionQuery.isGone(physical, answers.error())) {
      now.end(Write::outcomeUnknown);
    } else if (PositionQuery.isIdle(physical)) {
      rolledBack();
    }
    throw answers.error();
  }

  /** A commit through something that is not known to hand it on: only its end is looked at. */
  private void commitApart(Call<?> plain) throws Throwable {
    now.committing = true;
    joinExecutor();
    try {
      plain.run();
    } catch (Throwable error) {
      failed(Kind.WRITE, error);
      now.committing = false;
      throw error;
    }
    now.committing = false;
    if (PositionQuery.isIdle(physical)) {
      settling.apart();
    }
  }

  /** The application switches autocommit; on, it commits what is open. */
  void setAutoCommit(boolean on, Call<?> plain) throws Throwable {
    step(() -> {
      switched(on, plain);
      return null;
    }, plain);
  }

  private void switched(boolean on, Call<?> plain) throws Throwable {
    goesOn();
    if (!on || now.write == null || physical.getAutoCommit() || !PositionQuery.isOpen(physical)) {
      plain.run();
      if (now.write != null && PositionQuery.isIdle(physical)) {
        rolledBack(); // one in error
      }
      return;
    }
    if (isPlainChain) {
      committed(() -> null);
      plain.run();
    } else {
      commitApart(plain);
    }
  }

  /** Rolls back. */
  void rollback(Call<?> plain) throws Throwable {
    step(() -> {
      rolls(plain);
      return null;
    }, plain);
  }

  private void rolls(Call<?> plain) throws Throwable {
    goesOn();
    try {
      plain.run();
    } catch (Throwable error) {
      if (PositionQuery.isGone(physical, error)) {
        rolledBack();
      }
      throw error;
    }
    if (PositionQuery.isIdle(physical)) {
      rolledBack();
    }
  }

  /**
   * The application gives the connection up, maybe while another thread uses it: it does not wait for that one.
   *
   * @param cuts whether it is the driver's own, which cuts it
   */
  <T> T close(boolean cuts, Call<T> plain) throws Throwable {
    if (!known.steps.begins()) {
      aborted();
      return plain.run();
    }
    try {
      boolean stays = closing(cuts);
      T result = plain.run();
      now.isEnded = stays && now.isLeft && PositionQuery.isIdle(physical);
      return result;
    } finally {
      known.steps.ends();
    }
  }

  /**
   * Returns whether the transaction stays with the connection. A pool commits it, rolls it back, or leaves it open, and tells
   * nobody (HikariCP does not see every statement): whoever has the connection next sees what came of it.
   */
  private boolean closing(boolean cuts) {
    now.prepared.leave();
    if (now.write == null) {
      return false;
    }
    if (PositionQuery.isGone(physical, null)) {
      gone();
    } else if (now.committing || now.mayBePrepared || PositionQuery.isIdle(physical)) {
      joinExecutor();
      now.end(Write::outcomeUnknown); // another pool may commit it
    } else if (cuts) {
      rolledBack();
    } else {
      joinExecutor();
      now.isLeft = true;
    }
    return now.isLeft;
  }

  /** The application cuts the connection, maybe while another thread commits: that one may still hear of the outcome. */
  void aborted() {
    Write write = now.write;
    if (write != null) {
      write.outcomeUnknown();
    }
    now.prepared.leave();
  }
}
