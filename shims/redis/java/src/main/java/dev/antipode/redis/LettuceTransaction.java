package dev.antipode.redis;

import dev.antipode.BarrierException;
import java.util.ArrayList;
import java.util.List;

/**
 * A transaction of the application, from MULTI to its end. What is queued behind a MULTI that was refused, on a connection
 * that was made anew since, or behind a RESET is executed by itself, until a second MULTI, which the server takes then.
 * Lettuce has one transaction all the while, and gives the replies when EXEC or DISCARD has failed.
 */
final class LettuceTransaction<K, V> {
  private static final String LATE = "what the read has to wait for was not known before MULTI, and nothing waits after it";

  private final Binding binding;
  private final LettuceLine<K, V> line;
  private final LettuceLooks<K, V> looks; // before MULTI, for what was known by then; null where nobody asked
  private final int losses;
  // Under the lock of this, as it may end on another thread than that which queues:
  private final ReadCalls reads = new ReadCalls();
  private final List<CommandWords> commands = new ArrayList<>(); // as they were queued; null for one that does not write
  private WriteCall write;
  private boolean isOver;
  // On any thread:
  private volatile boolean isRefused;
  private volatile boolean isNested;

  LettuceTransaction(Binding binding, LettuceLine<K, V> line, LettuceLooks<K, V> looks) {
    this.binding = binding;
    this.line = line;
    this.looks = looks;
    this.losses = line.losses();
  }

  /** A command that may write is queued; null where nothing is recorded. One that comes too late is unknown at once. */
  synchronized WriteCall writes(Commands.Kind kind, CommandWords words) {
    if (!binding.records()) {
      return null;
    }
    if (isOver) { // nobody ends the transaction's write a second time
      WriteCall late = new WriteCall(binding, true).with(words);
      late.broke();
      late.failed();
      return late;
    }
    if (write == null) {
      write = new WriteCall(binding, true);
    }
    if (kind == Commands.Kind.MAYBE) {
      write.uncertain();
    }
    return write.with(words);
  }

  /** A command is queued, whatever it does: the replies are of all of them. */
  synchronized void queued(CommandWords words, boolean writes) {
    commands.add(writes ? words : null);
  }

  /** The replies of EXEC: a recorded history is told what each write did, as far as that is known. */
  synchronized void replied(List<?> replies) {
    if (write == null || replies.size() != commands.size()) {
      return;
    }
    for (int place = 0; place < replies.size(); place++) {
      if (commands.get(place) != null) {
        write.says(commands.get(place), replies.get(place));
      }
    }
  }

  /** A read is queued; null where it is a plain one. One that comes too late has ended at once. */
  synchronized ReadCall reads() {
    ReadCall read = reads.of(binding, false);
    if (isOver) {
      readAlone();
    }
    return read;
  }

  /**
   * EXEC is sent: what its reads have to show by now was waited for before MULTI, or is not any more (SHIM-48).
   *
   * @return why they are refused, and the transaction is not to be executed; null where it is
   */
  synchronized BarrierException leaves() {
    ReadCall before = looks == null ? null : looks.call();
    try {
      reads.leave(binding);
    } catch (BarrierException refused) {
      return refused;
    }
    reads.forEach(each -> each.waitedWith(before, LATE));
    return null;
  }

  synchronized WriteCall write() {
    return write;
  }

  synchronized boolean isPlain() {
    return write == null && reads.isEmpty();
  }

  synchronized boolean collects() {
    return reads.collects();
  }

  /** Its MULTI has failed. */
  void refused() {
    isRefused = true;
  }

  /** Another MULTI is sent in it: the server refuses that, unless this was torn. */
  void nested() {
    isNested = true;
  }

  /** A RESET is sent in it: the server discards it then, and Lettuce does not know. */
  void reset() {
    isRefused = true;
    unanswered(true);
  }

  /** Whether what was queued may have been executed by itself. */
  boolean isTorn() {
    return isRefused || line.losses() != losses;
  }

  /** The same, where EXEC was answered with this error; null for none. */
  boolean isTorn(String error) {
    return isTorn() || isWithoutMulti(error);
  }

  /** Whether a part may have been executed by itself though EXEC or DISCARD succeeded: only a second MULTI lets them. */
  boolean isTornInside() {
    return isNested && isTorn();
  }

  /** Whether this error says that there was no transaction on the connection on which it was to end. */
  static boolean isWithoutMulti(String error) {
    return error != null && error.contains("without MULTI");
  }

  /** The transaction was executed: its reads, with the place at which the server was then. */
  void executed(LettuceLine.SendTime exec, Object answerToQuestion) {
    if (looks != null && !looks.isBehind(exec)) {
      reads.forEach(each -> each.unproven(LettuceLooks.MADE_ANEW));
    }
    reads.saw(answerToQuestion);
    reads.finish();
  }

  /** Its reads were executed by themselves, or where that is not known: nothing waited for them, or was asked behind them. */
  synchronized void readAlone() {
    reads.forEach(each -> each.unproven("its transaction was not executed as one, and nothing else waited for the read"));
    reads.saw(null);
    reads.finish();
  }

  /** It ended without EXEC: nothing happened, unless it was torn. */
  synchronized void dropped(boolean mayHaveHappened) {
    isOver = true;
    if (write != null && mayHaveHappened) {
      write.broke();
      write.failed();
    } else if (write != null) {
      write.abandon();
    }
  }

  /** MULTI has failed, or EXEC or DISCARD without a reply; what may have left can still be executed, by itself too. */
  void unanswered(boolean mayBeSent) {
    boolean mayHaveHappened = mayBeSent || isTorn();
    dropped(mayHaveHappened);
    if (!mayHaveHappened) {
      return;
    }
    try {
      readAlone(); // Lettuce gives the reads what comes late
    } catch (BarrierException inVain) {
      return; // the application has a failure already
    }
  }
}
