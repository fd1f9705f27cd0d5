package dev.antipode.postgresql;

import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.WriteId;
import dev.antipode.postgresql.Asking.Answers;
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
  private final Known known;
  private final String unfit;
  private final boolean isPlainChain;
  private final Beside beside;
  private final SessionState session;
  private final Flushing flushing;

  private Write write;

  /** Whether one of its statements was a plain write: then the server need not be asked whether it wrote. */
  private boolean certain;

  private volatile boolean committing; // another thread may give the connection up meanwhile

  /** Whether the statement on its way is a transaction by itself. */
  private boolean alone;

  /** Whether a statement within the open transaction may have committed what came before it (SCOPE-25). */
  private boolean mayHaveCommitted;

  /** Whether the driver's own connection was used past what is around it, which then does not know what it has to end. */
  private boolean wentPast;

  private final PreparedWrites prepared = new PreparedWrites();
  private boolean mayBePrepared; // what was sent may have prepared the transaction, and nobody told

  /**
   * The transactions of a connection.
   *
   * @param physical the driver's own
   * @param unfit why its positions prove nothing; empty where they do
   * @param isPlainChain whether all between the application and the driver hands COMMIT on as it is, and rolls back what
   *     is open when it is closed
   */
  Flow(Binding binding, BaseConnection physical, String unfit, boolean isPlainChain) {
    this.binding = binding;
    this.physical = physical;
    this.known = Known.of(physical);
    this.unfit = unfit;
    this.isPlainChain = isPlainChain;
    this.beside = new Beside(binding, physical);
    this.session = new SessionState(known);
    this.flushing = new Flushing(physical, known, this::refused);
    takeOver();
  }

  /** What somebody before left open on this connection goes on here, where it is still open (SCOPE-24, SCOPE-25). */
  private void takeOver() {
    boolean isIdle = Asking.isIdle(physical);
    if (!isIdle) {
      known.moments.isOpen();
    }
    write = known.left.remove(binding.store());
    if (write != null && isIdle) {
      forget().outcomeUnknown(); // what ended it was seen by nobody
    }
    mayHaveCommitted = write != null; // another transaction may have begun since, by a client that is not wrapped
  }

  Binding binding() {
    return binding;
  }

  BaseConnection physical() {
    return physical;
  }

  SessionState session() {
    return session;
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
    boolean wasOpen = Asking.isOpen(physical);
    if (kind == Kind.END_PREPARED && write == null) {
      write = prepared.take(text);
    }
    begins(kind);
    mayBePrepared |= kind == Kind.MAYBE && PreparedWrites.mayPrepare(text);
    mayHaveCommitted |= several && kind == Kind.MAYBE;
    committing |= kind.mayCommit(); // stays where it fails: whoever asks then is told by the server, or in doubt
    T result = guarded(several ? Kind.MAYBE : kind, call);
    committing = false;
    if (kind == Kind.PREPARE && write != null && Asking.isIdle(physical)) {
      prepared.keep(text, forget()); // pending until somebody commits it
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
  void begins(Kind kind) throws SQLException {
    if (Asking.isIdle(physical)) {
      known.moments.transactionOver();
      session.transactionOver();
    } else {
      known.moments.isOpen();
    }
    known.moments.begins();
    beside.maySet(kind);
    if (!kind.mayWrite()) {
      return;
    }
    if (write == null) {
      alone = Asking.isIdle(physical) && physical.getAutoCommit();
      write = binding.store().begin();
      certain = mayHaveCommitted = false;
    } else {
      write.joinScope();
    }
    if (kind == Kind.END_PREPARED) {
      alone = certain = true;
    }
    certain |= kind == Kind.WRITE;
    tell(kind);
  }

  /** A COPY was cancelled. */
  void cancelled() {
    beside.takeBack();
    if (Asking.isIdle(physical)) {
      rolledBack();
    }
  }

  /** What is sent now is of these scopes, too. */
  void joinScopes(Collection<LineageScope> scopes) {
    if (write != null) {
      scopes.forEach(write::joinScope);
    }
  }

  /** What is to rest beside what is written next; where the server refuses that, nothing is. */
  private void tell(Kind kind) throws SQLException {
    try {
      beside.put(write, kind, alone);
    } catch (SQLException error) {
      failed(Kind.WRITE, error);
      throw error;
    }
  }

  /** A statement was done. */
  void finished(Kind kind, boolean wasOpen) {
    beside.takeBack();
    beside.maySet(kind);
    if (write == null || !Asking.isIdle(physical)) {
      return;
    }
    if (mayBePrepared) {
      forget().outcomeUnknown(); // it is pending until somebody ends it, who knows where
    } else if (kind == Kind.ROLLBACK || (kind == Kind.COMMIT && !wasOpen)) {
      rolledBack(); // a COMMIT of a transaction in error rolls it back
    } else {
      settleApart();
    }
  }

  /** A statement ended with an error, or was given up. */
  void failed(Kind kind, Throwable error) {
    beside.forget();
    if (write == null) {
      return;
    }
    if (Asking.isGone(physical, error)) {
      gone();
    } else if (Asking.isIdle(physical)) {
      if (kind == Kind.MAYBE || kind == Kind.END_PREPARED) {
        incomplete("pending", "it failed, and may have committed a part before");
      } else {
        rolledBack();
      }
    }
  }

  /** The connection is lost. What had not been told to commit is rolled back by the server. */
  private void gone() {
    boolean told = committing || alone || mayHaveCommitted;
    Write lost = forget();
    if (told) {
      lost.outcomeUnknown();
    } else {
      lost.abandon();
    }
  }

  /** The transaction is known not to have happened; what was committed within it has, and is covered (SCOPE-25). */
  void rolledBack() {
    if (write == null) {
      return;
    }
    if (!mayHaveCommitted) {
      forget().abandon();
      return;
    }
    mayHaveCommitted = false;
    if (!Asking.isIdle(physical)) {
      Asking.ask(physical, "ROLLBACK"); // the connection is given up, and whoever takes it does the same
    }
    if (Asking.isGone(physical, null)) {
      forget().outcomeUnknown();
    } else {
      settleApart();
    }
  }

  private Write forget() {
    Write last = write;
    write = null;
    certain = committing = alone = mayHaveCommitted = mayBePrepared = false;
    beside.forget();
    return last;
  }

  // The end of a transaction

  /** Commits, with the questions in the same round trip; {@code plain} is the client's own commit. */
  void commit(Call<?> plain) throws Throwable {
    if (write == null || !Asking.isOpen(physical) || physical.getAutoCommit()) {
      boolean wasOpen = write != null && Asking.isOpen(physical);
      plain.run();
      if (!wasOpen && Asking.isIdle(physical)) {
        rolledBack();
      }
      return;
    }
    if (!isPlainChain) {
      commitApart(plain);
      return;
    }
    committing = true;
    Answers answers = Asking.ask(
        physical, (certain ? Questions.HOW : Questions.HOW_AND_WHETHER) + "; COMMIT; " + Questions.PLACE);
    committing = false;
    if (!answers.statuses().contains("COMMIT")) {
      notCommitted(answers, plain);
      return;
    }
    String[] how = answers.rows().get(0).get(0);
    if (how[1].equals("f")) {
      rolledBack(); // it only read
    } else if (answers.rows(1) != null) {
      boolean off = how[0].equals("off");
      settle(Place.of(answers.rows(1)), off, off);
    } else if (Asking.isGone(physical, answers.error())) {
      incomplete("pending", "the connection broke before its position came");
    } else {
      refused(answers);
    }
    plain.run(); // nothing is open any more, so this sends nothing: it is for who listens between
  }

  private void notCommitted(Answers answers, Call<?> plain) throws Throwable {
    if (answers.error() == null) { // the server turned it into a rollback
      rolledBack();
      plain.run();
      return;
    }
    if (Asking.isGone(physical, answers.error())) {
      forget().outcomeUnknown();
    } else if (Asking.isIdle(physical)) {
      rolledBack();
    }
    throw answers.error();
  }

  /** A commit through something that is not known to hand it on: only its end is looked at. */
  private void commitApart(Call<?> plain) throws Throwable {
    committing = true;
    try {
      plain.run();
    } catch (Throwable error) {
      failed(Kind.WRITE, error);
      committing = false;
      throw error;
    }
    committing = false;
    if (Asking.isIdle(physical)) {
      settleApart();
    }
  }

  /** The application switches autocommit; on, it commits what is open. */
  void setAutoCommit(boolean on, Call<?> plain) throws Throwable {
    if (!on || write == null || physical.getAutoCommit() || !Asking.isOpen(physical)) {
      plain.run();
      if (write != null && Asking.isIdle(physical)) {
        rolledBack(); // one in error
      }
      return;
    }
    if (isPlainChain) {
      commit(() -> null);
      plain.run();
    } else {
      commitApart(plain);
    }
  }

  /** Rolls back. */
  void rollback(Call<?> plain) throws Throwable {
    try {
      plain.run();
    } catch (Throwable error) {
      if (Asking.isGone(physical, error)) {
        rolledBack();
      }
      throw error;
    }
    if (Asking.isIdle(physical)) {
      rolledBack();
    }
  }

  /** The driver's own connection is used past what is around it. */
  void goesPast() {
    wentPast = true;
  }

  /**
   * The application gives the connection up: called before it does.
   *
   * @param cuts whether it is the driver's own, which cuts it
   */
  void closing(boolean cuts) throws SQLException {
    prepared.leave();
    if (write == null) {
      return;
    }
    if (Asking.isGone(physical, null)) {
      gone();
    } else if (committing || Asking.isIdle(physical)) {
      forget().outcomeUnknown(); // another thread, or another pool, may commit it
    } else if (cuts || isPlainChain && !physical.getAutoCommit() && !wentPast) {
      rolledBack();
    } else {
      leave();
    }
  }

  /** The transaction may go on: whoever has the connection next sees how it ends. Until then its writes are pending. */
  private void leave() {
    known.left.put(binding.store(), forget());
  }

  /** The application cuts the connection, maybe while another thread commits: that one may still hear of the outcome. */
  void aborted() {
    if (write != null) {
      write.outcomeUnknown();
    }
    prepared.leave();
  }

  // Positions

  /**
   * The commit is done: its position joins the scope. Errors of our own questions end here.
   *
   * @param asynchronous whether it may not be flushed
   * @param saidSo whether that is the session's setting
   */
  private void settle(Place first, boolean asynchronous, boolean saidSo) {
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
    if (write == null) {
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
  private void settleApart() {
    Answers answers = Asking.ask(physical, Questions.PLACE);
    if (answers.error() != null && !Asking.isGone(physical, answers.error())) {
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

  // What is recorded

  private void record(Ordered position) {
    if (!unfit.isEmpty()) {
      incomplete("unfit", unfit);
      return;
    }
    boolean wrote = certain;
    Write done = forget();
    if (wrote) {
      done.record(position);
    } else {
      done.recordUpperBound(position);
    }
    Reading reading = Reading.current();
    if (reading != null) {
      reading.saw(Lineage.EMPTY, WriteId.position(binding.store().name(), position.epoch(), position.counter()));
    }
  }

  private void incomplete(String reason, String detail) {
    if (write != null) {
      forget().recordIncomplete(reason, detail);
    }
  }

  private void refused(Answers answers) {
    if (write == null) {
      return;
    }
    String words = answers.refusal();
    if (words.contains("recovery") && !certain) {
      rolledBack(); // a function that was called at a standby, which takes no writes
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
