package dev.antipode.postgresql;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.observer.Content;
import dev.antipode.observer.ReadReply;
import dev.antipode.postgresql.PositionQuery.Answers;
import dev.antipode.shim.LineageAtRest;
import dev.antipode.shim.Read;
import dev.antipode.shim.ReadValue;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Server;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.WaitOnRead;
import java.net.SocketTimeoutException;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.postgresql.copy.CopyIn;
import org.postgresql.copy.CopyOperation;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.TransactionState;

/** One read that waits, or that says what it depends on (SHIM-13, BAR-50, BAR-51). */
final class Reads {
  private static final String COLUMN = "antipode";
  private static final String CURSOR =
      "it fetches from a cursor that was opened before what it has to show was there: open it anew";

  private final Flow flow;
  private final Binding binding;
  private final Read read;
  private Lineage beside = Lineage.EMPTY; // what rests beside the rows
  private boolean isKnown = true; // what they depend on
  private WriteId covers;

  private Reads(Flow flow, Read read) {
    this.flow = flow;
    this.binding = flow.binding();
    this.read = read;
  }

  /** What a read has to do besides reading; null where it is a plain one, or no read. */
  static Reads of(Flow flow, Kind kind, String sent) {
    return of(flow, kind, sent, false);
  }

  /** The same of one that observers are told of where it may show data (REC-12, HIST-36): what may write is no sure read. */
  static Reads told(Flow flow, Kind kind, String sent) {
    return of(flow, kind, sent, Statements.isNoted(sent));
  }

  private static Reads of(Flow flow, Kind kind, String sent, boolean isTold) {
    // Behind it there may be a snapshot.
    boolean isFirst = kind == Kind.SESSION && PositionQuery.opensTransaction(flow.physical());
    if (!isFirst && !kind.mayRead(sent)) {
      return null;
    }
    RegisteredStore store = flow.binding().refreshed().store();
    boolean waits = flow.binding().options().waitOnRead();
    Read read = isTold ? store.read(waits, kind == Kind.READ) : store.readUntold(waits);
    return read == Read.PLAIN ? null : new Reads(flow, read);
  }

  /** Runs a call of the client's that may return data past statements (SHIM-44): it waits first, and is covered after. */
  static <T> T around(Flow flow, Kind kind, String sent, Flow.Call<T> call) throws Throwable {
    return around(of(flow, kind, sent), kind, sent, call);
  }

  /**
   * The same.
   *
   * @param read what it has to do besides; null for nothing
   * @param sent its text; null where it has none
   */
  static <T> T around(Reads read, Kind kind, String sent, Flow.Call<T> call) throws Throwable {
    if (read == null) {
      return call.run();
    }
    try {
      read.await(sent);
      T result = call.run();
      boolean shows = !(result instanceof CopyIn) && Statements.showsData(kind, sent); // a CopyIn takes rows, and gives none
      if (shows && result instanceof CopyOperation) { // nothing can be asked before its end
        read.missed();
      } else if (shows) {
        read.flow.together(() -> {
          read.cover(null, null);
          return null;
        });
      }
      read.finish();
      return result;
    } finally {
      read.close();
    }
  }

  // Waiting

  /** Waits until the connection's own server has the writes; {@code sent} is the statement's text where that is known. */
  void await(String sent) throws SQLException {
    if (!read.mayWait()) {
      return;
    }
    Lineage wanted = wanted();
    if (wanted.isEmpty() || !areOfThen(flow.moments().fetched(sent), wanted, CURSOR) || Moments.onlyFetches(sent)) {
      return;
    }
    Duration patience = WaitOnRead.tightened(binding.timeout(), read.scope());
    long deadline = System.nanoTime() + patience.toNanos();
    boolean mayGive = sent == null || RefCursors.mayBeIn(binding.classify(sent), sent);
    boolean isFailed = flow.physical().getTransactionState() == TransactionState.FAILED;
    List<String[]> rows = isFailed ? null : life(patience, mayGive ? Questions.LIFE_AND_CURSORS : Questions.LIFE);
    String[] facts = rows == null ? null : rows.get(0);
    Set<String> open = rows == null || !mayGive ? null
        : rows.stream().map(row -> row[2]).filter(Objects::nonNull).collect(Collectors.toSet());
    if (facts != null && mayKeepSnapshot() && !facts[1].startsWith("read ")) {
      String words = "its " + facts[1] + " transaction reads from a snapshot taken before: begin another one";
      if (areOfThen(List.of(flow.moments().snapshot()), wanted, words)) {
        flow.moments().proved(wanted, open);
      }
      return;
    }
    Target target = AntipodePostgres.targetOf(flow.physical(), binding);
    Server server = binding.reach(target, flow.physical());
    Duration left = Duration.ofNanos(Math.max(deadline - System.nanoTime(), 0));
    boolean isThere = read.await(server, left);
    String life = server.session() instanceof Look look ? look.life() : "";
    if (facts != null && !life.isEmpty() && !life.equals(facts[0])) {
      String name = binding.store().name();
      String words = server.address() + " leads to several servers: name them one by one";
      Visibility answer = Visibility.unproven(words, UnprovenKind.UNFIT);
      WaitOnRead.waitedInVain(name, name + ": " + words, Duration.ZERO, answer);
    } else if (isThere) {
      flow.moments().proved(wanted, open);
    }
  }

  /** Return whether a transaction is open: it may have a snapshot, as the driver asks questions of its own in it, unseen. */
  private boolean mayKeepSnapshot() {
    boolean isOpen = PositionQuery.isOpen(flow.physical());
    if (isOpen) {
      flow.moments().isOpen();
    }
    return isOpen;
  }

  private Lineage wanted() {
    return Lineage.of(read.required());
  }

  /**
   * Asks on the application's own connection, within the read's time: one that does not answer then is closed, as the question
   * is still open on it (SHIM-47). Asking our own connection first would not do: the server may stop answering in between.
   */
  private List<String[]> life(Duration patience, String question) throws SQLException {
    BaseConnection connection = flow.physical();
    int own = connection.getNetworkTimeout();
    int most = (int) WaitOnRead.questionTimeout(patience).toMillis();
    boolean isShorter = own == 0 || most < own;
    if (isShorter) {
      connection.setNetworkTimeout(Runnable::run, most);
    }
    Answers answers = PositionQuery.ask(connection, question);
    if (isShorter && answers.error() != null && answers.error().getCause() instanceof SocketTimeoutException) {
      connection.abort(Runnable::run);
      flow.failed(Kind.READ, answers.error());
      String name = binding.store().name();
      String words = "the server does not answer";
      WaitOnRead.waitedInVain(name, name + ": " + words, patience, Visibility.notYet(words));
      throw answers.error();
    }
    if (isShorter && !connection.isClosed()) {
      connection.setNetworkTimeout(Runnable::run, own);
    }
    List<String[]> rows = answers.rows(0);
    return rows == null || rows.isEmpty() ? null : rows;
  }

  /** Return whether data of these moments show what is wanted; where not, the read has waited in vain. */
  private boolean areOfThen(List<Lineage> moments, Lineage wanted, String words) {
    boolean areAll = moments.stream().allMatch(each -> wanted.ids().stream().allMatch(each::covers));
    if (!areAll) {
      String name = binding.store().name();
      WaitOnRead.isPast(name, name + ": " + words);
    }
    return areAll;
  }

  /**
   * What is fetched now is of a moment that is past: throws, as the policies say, where the scope, or what is read after, holds
   * by now what was not proved then (SHIM-48).
   *
   * @param words what is fetched, and the way round
   */
  static void fetches(Flow flow, Lineage moment, String words) {
    Reads later = of(flow, Kind.READ, null);
    if (later != null && later.read.mayWait()) {
      later.areOfThen(List.of(moment), later.wanted(), words);
    }
  }

  // Covering

  /** Where the server that answered is, after the value; and what rests beside the rows. */
  void cover(ResultSet rows, Statement statement) throws SQLException {
    if (!read.collects()) {
      return;
    }
    if (binding.rests() && rows != null) {
      sawBeside(rows, statement);
    }
    boolean isOpen = PositionQuery.isOpen(flow.physical());
    if (!isOpen && !PositionQuery.isIdle(flow.physical())) {
      missed();
      return;
    }
    Answers answers = PositionQuery.ask(
        flow.physical(),
        isOpen ? "SAVEPOINT antipode; " + Questions.COVER + "; RELEASE antipode" : Questions.COVER);
    if (answers.error() != null) {
      if (isOpen && !PositionQuery.isGone(flow.physical(), answers.error())) {
        PositionQuery.ask(flow.physical(), "ROLLBACK TO antipode; RELEASE antipode");
      }
      String store = binding.store().name();
      binding.say("AP203", "cover", "what is read from " + store + " cannot be covered: run antipode init");
      missed();
      return;
    }
    String[] row = answers.lastRow();
    if (row == null || row[0] == null || row[1] == null || row[2] == null || row[3] == null) {
      missed();
      return;
    }
    long reached = Lsn.parse(row[0]);
    long counter = Lsn.parse(row[3]);
    boolean isPrimary = !"t".equals(row[6]);
    if (isPrimary) {
      long inserted = Lsn.recordEnd(counter, row[5] == null ? 0 : Long.parseLong(row[5]));
      counter = Long.compareUnsigned(reached, inserted) >= 0 ? reached : inserted;
    } else if (Long.compareUnsigned(counter, reached) < 0) {
      missed(); // it replays what it has not received since it began to: from an archive
      return;
    }
    String word = row[4] == null ? "" : row[4];
    Epoch epoch = new Epoch(Long.parseUnsignedLong(row[2]), Long.parseLong(row[1]), word);
    covers = WriteId.position(binding.store().name(), epoch.toString(), counter);
  }

  /** Rows that have been fetched and can be gone through again tell what rests beside them. */
  private void sawBeside(ResultSet rows, Statement statement) throws SQLException {
    ResultSetMetaData columns = rows.getMetaData();
    int column = 0;
    for (int number = 1; number <= columns.getColumnCount(); number++) {
      if (columns.getColumnName(number).equals(COLUMN)) {
        column = number;
      }
    }
    boolean isWhole = rows.getType() != ResultSet.TYPE_FORWARD_ONLY;
    if (column == 0 || !isWhole || statement.getFetchSize() != 0) {
      missed();
      return;
    }
    while (rows.next()) {
      String text = rows.getString(column);
      beside = beside.union(LineageAtRest.lineage(text, binding.store().name(), binding.options().lineageIn()));
    }
    rows.beforeFirst();
  }

  private void missed() {
    isKnown = false;
  }

  /** The read is over: who wants to know is told, and what it depends on is collected (SHIM-13). */
  void finish() {
    ReadValue rows = new ReadValue(Key.EMPTY, Content.UNKNOWN, null, covers, beside, isKnown);
    read.returned(new ReadReply(binding.follows() ? server() : null, List.of(rows)));
  }

  /** There is no result; nothing where it was over before. */
  void close() {
    read.close();
  }

  /** Return the server that answered; null where that cannot be told: whatever fails here, the application has its rows. */
  private Server server() {
    try {
      return binding.reach(AntipodePostgres.targetOf(flow.physical(), binding), flow.physical());
    } catch (RuntimeException error) {
      binding.say("AP603", "follow", "a read of " + binding.store().name() + " could not be followed: " + error);
      return null;
    }
  }
}
