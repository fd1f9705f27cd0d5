package dev.antipode.redis;

import dev.antipode.BarrierException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Ordered;
import dev.antipode.Reading;
import dev.antipode.UnprovenKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.WaitOnRead;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** One read: what it has to wait for, and who wants to know what it depends on. */
final class ReadCall {
  private final Binding binding;
  private final Reading reading; // null where none collects
  private final Reading after; // whose lineage it waits for in the place of what the scope holds; null for that
  private final LineageScope scope;
  private final boolean waits; // for what the scope holds
  private final boolean merges;
  private final Duration timeout;
  private List<WriteId> ids; // as it was when it was sent last; until then, when it was issued
  private long began;
  private long deadline;
  private String epoch = ""; // the server's own, as last seen: whether it is marked decides whether older ones have ended
  private Visibility trouble; // why the writes are not visible, once it has given up
  private boolean isUnanswered;
  private boolean isPast; // nothing was waited for, and nothing can be
  private BarrierException refused; // its store is misspelt in what it has to see; null where it may be sent
  private Lineage merged = Lineage.EMPTY;
  private WriteId covers; // the position that goes into lineages; null for none

  private ReadCall(Binding binding, Reading reading, Reading after, LineageScope scope, boolean waits, boolean merges) {
    this.binding = binding;
    this.reading = reading;
    this.after = after;
    this.scope = scope;
    this.waits = waits;
    this.merges = merges;
    this.timeout = binding.timeout();
    leaves();
  }

  /**
   * What a read that is sent now has to do besides reading; null where it is a plain one (SHIM-12).
   *
   * @throws BarrierException where it is not to be sent at all ({@link #check})
   */
  static ReadCall of(Binding binding) {
    ReadCall call = unsure(binding);
    if (call != null) {
      call.check();
    }
    return call;
  }

  /** The same where it is not known yet whether anything is read: behind a MULTI. */
  static ReadCall unsure(Binding binding) {
    ReadCall call = queued(binding);
    return call == null || call.collects() || call.mayWait(false) ? call : null;
  }

  /** The same for one that is sent later: what its scope holds by then nobody knows yet. */
  static ReadCall queued(Binding binding) {
    Reading reading = Reading.current();
    boolean isMerging = binding.merges();
    if (reading == null && !binding.waits() && !isMerging) {
      return null;
    }
    LineageScope scope = LineageScope.current();
    Reading after = binding.follows() || reading == null || reading.after().isEmpty() ? null : reading;
    boolean waits = after == null && binding.waits() && scope != null && !binding.follows(); // REC-12: nothing waits then
    boolean merges = isMerging && scope != null;
    boolean isPlain = reading == null && !waits && !merges;
    return isPlain ? null : new ReadCall(binding, reading, after, scope, waits, merges);
  }

  /** What others queued is sent now, or its replies are taken: for what that waits besides; null for nothing (BAR-51). */
  static ReadCall sending(Binding binding) {
    ReadCall own = queued(binding);
    return own == null || !own.mayWait(false) ? null : new ReadCall(binding, null, own.after, own.scope, own.waits, false);
  }

  /** It is sent now: what it waits for is what its scope holds by now, and its time begins. Ask {@link #check} next. */
  void leaves() {
    ids = List.of();
    refused = null;
    try {
      ids = WaitOnRead.required(binding.store(), after, scope, waits);
    } catch (BarrierException misspelt) {
      refused = misspelt;
    }
    began = System.nanoTime();
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
    return later && waits || !ids.isEmpty() || isRefused();
  }

  List<WriteId> ids() {
    return ids;
  }

  /** Whether somebody wants to know what the value depends on. */
  boolean collects() {
    return reading != null || merges;
  }

  /** Whether another read that is sent with it waits for the same, and the same ones want to know of it. */
  boolean isLike(ReadCall other) {
    return reading == other.reading && merges == other.merges && waitsLike(other);
  }

  /** Whether another read that is sent with it waits for the same. */
  boolean waitsLike(ReadCall other) {
    return scope == other.scope && after == other.after && waits == other.waits;
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
  Visibility judge(Seen seen) {
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

  /** A value was read at this place in replication, with this lineage beside it (SHIM-13). */
  void saw(Replication now, Lineage beside) {
    Ordered position = now == null ? null : now.position();
    String store = binding.store().name();
    covers = position == null ? null : WriteId.position(store, position.epoch(), position.counter());
    if (reading != null) {
      if (position == null) {
        reading.saw(beside);
        reading.marked(store);
      } else {
        reading.saw(beside, covers);
      }
    }
    merged = merged.union(beside);
    merged = position == null
        ? merged.markedIncomplete(store)
        : merged.including(covers);
  }

  /** The position that it puts into lineages (SHIM-13); null for none. */
  WriteId covers() {
    return collects() ? covers : null;
  }

  /** This lineage rests beside a value that was read; null where the reply did not hold it. */
  void sawBeside(Lineage beside) {
    if (!collects()) {
      return;
    }
    if (beside == null) {
      missed();
      return;
    }
    if (reading != null) {
      reading.saw(beside);
    }
    merged = merged.union(beside);
  }

  /** A value was read whose lineage at rest was not. */
  private void missed() {
    if (!binding.options().lineageIn()) {
      return;
    }
    String store = binding.store().name();
    if (reading != null) {
      reading.marked(store);
    }
    merged = merged.markedIncomplete(store);
  }

  /** The read is over: automatic merging, then what the policies say of a wait in vain (BAR-50). */
  void finish() {
    if (merges) {
      scope.transferRead(merged);
    }
    check();
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
