package dev.antipode.redis;

import dev.antipode.BarrierException;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.observer.Content;
import dev.antipode.observer.ReadReply;
import dev.antipode.shim.Read;
import dev.antipode.shim.ReadValue;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.WaitOnRead;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Supplier;

/** One read: what it has to wait for, and who wants to know what it depends on. */
final class ReadCall {
  private final Binding binding;
  private final Read read;
  private final boolean isTold; // to dry-run and a recorded history, where they want it
  private final Duration timeout;
  private final List<ReadValue> values = new ArrayList<>(1); // under the lock of this
  private List<WriteId> ids; // as it was when it was sent last; until then, when it was issued
  private long began;
  private long deadline;
  private String epoch = ""; // the server's own, as last seen: whether it is marked decides whether older ones have ended
  private Visibility trouble; // why the writes are not visible, once it has given up
  private boolean isUnanswered;
  private boolean isPast; // nothing was waited for, and nothing can be
  private BarrierException refused; // its store is misspelt in what it has to see; null where it may be sent
  private Lineage beside = Lineage.EMPTY; // what rested beside the values
  private boolean isKnown = true; // what they depend on
  private WriteId covers; // the position that goes into lineages; null for none

  private ReadCall(Binding binding, Read read, boolean isTold) {
    this.binding = binding;
    this.isTold = isTold;
    this.read = read;
    this.timeout = binding.timeout();
    leaves();
  }

  /**
   * What a read that is sent now has to do besides reading; null where it is a plain one (SHIM-12).
   *
   * @param told whether dry-run and a recorded history are told of it by this
   * @throws BarrierException where it is not to be sent at all ({@link #check})
   */
  static ReadCall of(Binding binding, boolean told) {
    ReadCall call = queued(binding, told);
    if (call == null || !call.asks() && !call.isRefused() && !call.read.isTold()) {
      return null;
    }
    if (call.isRefused()) {
      call.failed();
    }
    call.check();
    return call;
  }

  /** The same for one that is sent later: what its scope holds by then nobody knows yet. */
  static ReadCall queued(Binding binding, boolean told) {
    Read read = begun(binding, told);
    return read == Read.PLAIN ? null : new ReadCall(binding, read, told);
  }

  /** What others will queue is opened now: for what that waits; null for nothing (BAR-51). */
  static ReadCall opening(Binding binding) {
    Read read = begun(binding, false);
    ReadCall own = read == Read.PLAIN ? null : new ReadCall(binding, read.onlyWaiting(), false);
    return own == null || !own.mayWait(false) ? null : own;
  }

  /**
   * What others queued is sent now, or its replies are taken: for what that waits besides (BAR-51), and what depends on the
   * replies (SCOPE-24); null for nothing.
   */
  static ReadCall sending(Binding binding) {
    Read read = begun(binding, false);
    ReadCall own = read == Read.PLAIN ? null : new ReadCall(binding, read, false);
    return own == null || !own.asks() && !own.isRefused() ? null : own;
  }

  private static Read begun(Binding binding, boolean told) {
    if (!binding.records()) {
      return Read.PLAIN;
    }
    boolean waits = binding.options().waitOnRead();
    return told ? binding.store().read(waits, true) : binding.store().readUntold(waits);
  }

  /** It is sent now: what it waits for is what its scope holds by now, and its time begins. Ask {@link #check} next. */
  void leaves() {
    ids = List.of();
    refused = null;
    try {
      ids = read.required();
    } catch (BarrierException misspelt) {
      refused = misspelt;
    }
    began = System.nanoTime();
    LineageScope scope = read.scope();
    long own = began + timeout.toNanos();
    boolean isTightened = scope != null && scope.deadline().isPresent() && scope.deadline().getAsLong() - own < 0;
    deadline = isTightened ? scope.deadline().getAsLong() : own;
  }

  /** Throws where it is not to be sent: its store is misspelt in what it has to see first (BAR-51). */
  void check() {
    if (refused != null) {
      throw refused;
    }
  }

  boolean isRefused() {
    return refused != null;
  }

  /** Whether it has to wait, or is refused; with {@code later} whether it may have to by the time it is sent. */
  boolean mayWait(boolean later) {
    return later && read.mayWait() || !ids.isEmpty() || isRefused();
  }

  List<WriteId> ids() {
    return ids;
  }

  /** Whether somebody wants to know what the value depends on. */
  boolean collects() {
    return read.collects();
  }

  /** Whether the server is asked where it is, before the read or with it. */
  boolean asks() {
    return collects() || !ids.isEmpty();
  }

  /** Whether another read of the caller's would be told, and wait, like it. */
  boolean isCallers(boolean told) {
    return isTold == told && read.isCallers();
  }

  /** Whether another read that is sent with it waits for the same, and the same ones want to know of it. */
  boolean isLike(ReadCall other) {
    return read.isLike(other.read);
  }

  /** Whether another read that is sent with it waits for the same. */
  boolean waitsLike(ReadCall other) {
    return read.waitsLike(other.read);
  }

  /** What this waits for was waited for by another read, too, or not, and cannot be any more; null: nobody waited. */
  void waitedWith(ReadCall other, String words) {
    Lineage waited = other == null ? Lineage.EMPTY : Lineage.of(other.ids);
    if (ids.stream().allMatch(waited::covers)) {
      trouble = ids.isEmpty() ? null : other.trouble;
    } else {
      past(words);
    }
  }

  /** Nanoseconds until the deadline. */
  long left() {
    return deadline - System.nanoTime();
  }

  /** How long a question for it may take on the application's connection (SHIM-47). */
  Duration questionTimeout() {
    return WaitOnRead.questionTimeout(Duration.ofNanos(left()));
  }

  /** A question was not answered in that time: the wait is over, and its connection is closed. */
  void unanswered() {
    isUnanswered = true;
    trouble = Visibility.notYet("the server does not answer");
  }

  boolean isUnanswered() {
    return isUnanswered;
  }

  /** The epochs whose marks are asked for, the server's own first; empty where none has to be. */
  List<String> foreign() {
    List<String> others = ids.stream()
        .map(WriteId::version)
        .filter(Ordered.class::isInstance)
        .map(version -> ((Ordered) version).epoch())
        .filter(each -> !each.equals(epoch))
        .distinct()
        .sorted()
        .toList();
    if (others.isEmpty()) {
      return others;
    }
    List<String> fields = new ArrayList<>(List.of(epoch.isEmpty() ? "-" : epoch));
    fields.addAll(others);
    return fields;
  }

  /** Whether the server's history was another one, so that the marks of its own have to be asked for. */
  boolean isElsewhere(Replication now) {
    boolean isChanged = !now.epoch().equals(epoch);
    epoch = now.epoch();
    return isChanged && !foreign().isEmpty();
  }

  /** What is missing at the connection's server; null where nothing is. */
  Visibility judge(ServerState seen) {
    Visibility worst = null;
    for (WriteId id : ids) {
      Visibility answer = seen.judge(id);
      if (answer.isUnproven()) {
        return answer;
      }
      if (!answer.isVisible()) {
        worst = answer;
      }
    }
    return worst;
  }

  /** Whether this is to be waited for; else the read goes on, with its trouble if there is one. */
  boolean isToWait(Visibility found) {
    trouble = found;
    return found != null && !found.isUnproven() && left() > 0;
  }

  /** What was found out does not hold for the read, for this reason. */
  void unproven(String reason) {
    if (!ids.isEmpty() && trouble == null) {
      trouble = Visibility.unproven(reason);
    }
  }

  /** It is queued in a MULTI that was begun before what it has to show was known (SHIM-48). */
  private void past(String reason) {
    trouble = Visibility.unproven(reason);
    isPast = true;
  }

  /** The server could not be asked where it is. */
  void unasked(String words) {
    trouble = Visibility.unproven("it could not be asked where it is (" + words + ")");
  }

  /** The server refused to say where it is. */
  void refused(String words) {
    if (!ids.isEmpty()) {
      trouble = Visibility.unproven("its user may not ask where it is (" + words + ")", UnprovenKind.RIGHT);
    }
    binding.denied(words);
  }

  /** A read was answered so, as the application gets it; one that was refused has read nothing. */
  synchronized void answered(CommandWords command, Object reply) {
    if (read.isTold() && !(reply instanceof Exception)) {
      values.addAll(CommandEvents.seen(command, reply));
    }
  }

  /** A value was read at this place in replication, with this lineage beside it (SHIM-13). */
  void saw(Replication now, Lineage found) {
    Ordered position = now == null ? null : now.position();
    covers = position == null ? null : WriteId.position(binding.store().name(), position.epoch(), position.counter());
    isKnown &= position != null;
    beside = beside.union(found);
  }

  /** The position that it puts into lineages (SHIM-13); null for none. */
  WriteId covers() {
    return collects() ? covers : null;
  }

  /** This lineage rests beside a value that was read; null where the reply did not hold it. */
  void sawBeside(Lineage found) {
    if (found == null) {
      isKnown &= !binding.options().lineageIn();
    } else {
      beside = beside.union(found);
    }
  }

  /** Who sent what another scope queued has its replies, too: what rested beside them. */
  void sawWith(ReadCall other) {
    beside = beside.union(other.beside);
    isKnown &= other.isKnown;
  }

  /** There is no reply; nothing where it was over before. */
  void failed() {
    read.close();
  }

  /** The read is over: it is told, then what the policies say of a wait in vain (BAR-50). */
  void finish() {
    finish(null, null);
  }

  /** The same; {@code again} sends it once more for {@link ReadReply}. */
  void finish(Supplier<?> shown, Callable<?> again) {
    BarrierException inVain = inVain();
    end(inVain, shown, again);
    if (inVain != null) {
      throw inVain;
    }
  }

  /** It is over; where it has waited in vain, only who collects is told: some of its values may have been seen. */
  synchronized void end(BarrierException inVain, Supplier<?> shown, Callable<?> again) {
    if (inVain != null) {
      failed();
    }
    List<ReadValue> told = new ArrayList<>(values);
    if (collects()) {
      ReadValue first = told.isEmpty() ? new ReadValue(Key.EMPTY, Content.UNKNOWN) : told.remove(0);
      told.add(0, first.depending(covers, beside, isKnown));
    }
    read.returned(new ReadReply(binding.server(), told, shown, again));
  }

  /** Why it has waited in vain, by the policies; null where it has not, or they let it go on. */
  BarrierException inVain() {
    try {
      check();
      tellTrouble();
      return null;
    } catch (BarrierException inVain) {
      return inVain;
    }
  }

  private void tellTrouble() {
    if (trouble == null) {
      return;
    }
    String name = binding.store().name();
    String words = "%s at %s: %s. The read waited for it %d ms at most"
        .formatted(name, binding.target().address(), trouble.reason(), timeout.toMillis());
    if (isPast) {
      WaitOnRead.isPast(name, words);
      return;
    }
    WaitOnRead.waitedInVain(name, words, Duration.ofNanos(System.nanoTime() - began), trouble);
  }
}
