package dev.antipode.internal.propagation;

import dev.antipode.Gap;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.MalformedLineageException;
import dev.antipode.Mode;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.model.Display;
import dev.antipode.internal.scope.ScopeLog;
import dev.antipode.internal.trust.Decision;
import dev.antipode.internal.trust.Direction;
import dev.antipode.internal.trust.Judgement;
import dev.antipode.internal.trust.Reason;
import dev.antipode.internal.trust.Seal;
import dev.antipode.internal.trust.TrustLog;
import dev.antipode.internal.trust.TrustSettings;
import dev.antipode.observer.MessageObserver;
import dev.antipode.observer.Observers;
import dev.antipode.propagation.Carriers.InboundHeaders;
import dev.antipode.shim.Logs;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;

/** Between a scope and the texts that come and go: trust, budget, pending writes (chapters PROP and TRUST). */
public final class Gate {
  /** The header of a trace in Jaeger's own form. */
  public static final String JAEGER_TRACE = "uber-trace-id";

  private static final int MOST_ENTRIES = 512;

  private Gate() {}

  /** What came of texts that arrived: the lineage to join, and why something is missing from it. */
  public static final class ReceivedLineage {
    private Lineage lineage = Lineage.EMPTY;
    private final List<String> messages = new ArrayList<>(); // what the texts are called in a recorded history
    private final List<String[]> gaps = new ArrayList<>();
    private final List<String> missing = new ArrayList<>(); // why it is incomplete, to be counted once its scope is known

    /** What they bring. */
    public Lineage lineage() {
      return lineage;
    }

    /** Whether one of them is no lineage. */
    public boolean isMalformed() {
      return gaps.stream().anyMatch(gap -> gap[0].equals("malformed"));
    }

    /** Keeps the reasons for the gaps of this scope's barriers (TRUST-27); a recorded history has the receipt. */
    public void noteIn(LineageScope scope) {
      Observers.events().onLineageReceived(scope, messages, lineage);
      gaps.forEach(gap -> scope.noteGap(gap[0], "", gap[1]));
      tell(scope);
      if (gaps.isEmpty() && ProcessSettings.inForce().mode() == Mode.DRY_RUN) {
        lineage.incomplete().forEach(store -> Observers.events().onIncompleteLineageReceived(store, scope));
      }
    }

    /** Counts what is missing, as of this scope; null: of none (OBS-2, REC-17). */
    public void tell(LineageScope scope) {
      missing.forEach(reason -> Observers.events().onLineageIncomplete(reason, "", scope, true));
    }

    private void gap(String reason, String detail) {
      gaps.add(new String[] {reason, detail});
    }
  }

  /**
   * Judges each text and reads what is believed; throws nothing (TRUST-1, WIRE-25).
   *
   * <p>What cannot be read makes the result incomplete anywhere; what is not believed does so only under {@code key}, or
   * anybody could switch strict barriers off from outside (TRUST-28).
   */
  public static ReceivedLineage take(InboundHeaders came, Function<String, Decision> judge, Direction direction, String sender) {
    ReceivedLineage taken = new ReceivedLineage();
    Set<Decision> refused = new LinkedHashSet<>();
    boolean malformed = false;
    boolean oversize = false;
    for (String text : came.isCut() && came.texts().isEmpty() ? List.of("") : came.texts()) {
      Decision decision = judge.apply(text);
      oversize |= came.isCut() && (decision.accepted() || decision.reason() == Reason.SEAL); // TRUST-28
      if (!decision.accepted()) {
        refused.add(decision);
        continue;
      }
      if (decision.reason() == Reason.EXPIRED) {
        TrustLog.report(decision, direction, sender == null ? "" : sender);
      }
      if (text.isEmpty() && came.isCut()) {
        continue;
      }
      try {
        MessageNames.NamedLineage brought = MessageNames.take(Lineage.deserialize(decision.text()));
        Lineage joined = taken.lineage.union(brought.lineage());
        if (joined.size() > MOST_ENTRIES) {
          oversize = true;
          continue;
        }
        taken.messages.addAll(brought.messages());
        taken.lineage = joined;
      } catch (MalformedLineageException e) {
        malformed = true;
        Observers.events().onLineageDropped("malformed", direction.word());
      }
    }
    ScopeLog.know(taken.lineage);
    refused.forEach(decision -> refuse(taken, decision, direction, sender));
    if (oversize) {
      String detail = "more lineage came (" + words(direction)
          + ") than is read of one receipt: 16 texts, 16384 octets, 512 entries";
      taken.gap("oversize", detail);
      taken.missing.add("oversize");
      Observers.events().onLineageDropped("oversize", direction.word());
      Logs.warn("AP408", "oversize " + direction, detail + ". The rest is missing.", "dropped");
      taken.lineage = taken.lineage.markedIncomplete();
    }
    if (malformed) {
      String from = sender == null || sender.isEmpty() ? "a local peer" : Display.shown(sender);
      String detail = "a lineage from " + from + " (" + words(direction) + ") could not be read";
      taken.gap("malformed", detail);
      taken.missing.add("malformed");
      Logs.warn("AP405", "malformed " + direction, detail + ": what it held is missing.", "dropped");
      taken.lineage = taken.lineage.markedIncomplete();
    } else if (taken.lineage.hasContent()) {
      Observers.events().onLineageSized(direction.word(), taken.lineage.serialize().length());
    }
    return taken;
  }

  private static void refuse(ReceivedLineage taken, Decision decision, Direction direction, String sender) {
    TrustLog.report(decision, direction, sender == null ? "" : sender);
    if (decision.reason() == Reason.SEAL) {
      String state = Seal.State.valueOf(decision.about()).word();
      taken.gap("seal", "a lineage (" + words(direction) + ") was dropped: " + state);
      taken.missing.add("seal");
      taken.lineage = taken.lineage.markedIncomplete();
    } else {
      taken.gap("untrusted", "a lineage (" + words(direction) + ") was dropped: " + decision.reason().words());
    }
  }

  private static String words(Direction direction) {
    return direction.word().replace('_', ' ');
  }

  /**
   * The text that leaves: within the budget, sealed if seals are asked for; null where nothing need leave (WIRE-31). What
   * the budget leaves out is marked in the text and counted; the scope's lineage stays whole (WIRE-36).
   *
   * @param sender whose message it leaves with, for a recorded history; null for what rests beside a value
   */
  public static String give(Lineage lineage, TrustSettings trust, Direction direction, LineageScope sender) {
    return lineage.hasContent() ? given(lineage, trust, direction, sender, messageOf(sender), Lineage.EMPTY) : null;
  }

  /**
   * The same for a response: the caller has a part of the scope's lineage already, and that is not said again. A recorded
   * history is told the whole, also where nothing is new (HIST-30).
   */
  public static String giveBack(Lineage fresh, TrustSettings trust, Direction direction, LineageScope sender) {
    MessageObserver message = messageOf(sender);
    Lineage whole = message == null ? Lineage.EMPTY : sender.lineage();
    return fresh.hasContent() || whole.hasContent() ? given(fresh, trust, direction, sender, message, whole) : null;
  }

  /** The text of a response that says that nothing was added (PROP-13). */
  public static String giveNothing(TrustSettings trust, Direction direction) {
    return text(Lineage.EMPTY, trust, direction);
  }

  private static MessageObserver messageOf(LineageScope sender) {
    return sender == null ? null : Observers.events().observeMessage(sender);
  }

  private static String given(
      Lineage lineage,
      TrustSettings trust,
      Direction direction,
      LineageScope sender,
      MessageObserver message,
      Lineage told) {
    if (message == null) {
      return text(fitted(lineage, trust, direction, sender), trust, direction);
    }
    Lineage leaves = fitted(MessageNames.named(lineage, message.name()), trust, direction, sender);
    message.sent(leaves.union(told));
    return text(leaves, trust, direction);
  }

  private static Lineage fitted(Lineage lineage, TrustSettings trust, Direction direction, LineageScope sender) {
    int budget = ProcessSettings.inForce().budgetBytes();
    LineageScope scope = sender == null ? LineageScope.current() : sender;
    Supplier<List<String>> changed = () -> scope == null ? List.of() : scope.changedStores();
    Lineage fitted = lineage.fit(budget - trust.sealLength(), changed);
    if (fitted != lineage) {
      Set<String> leftOut = new TreeSet<>(lineage.stores());
      leftOut.removeAll(fitted.stores());
      leftOut.forEach(
          store -> Observers.events().onLineageIncomplete("budget", store, LineageScope.current(), true));
      Logs.warn(
          "AP406",
          "budget",
          "a lineage of " + lineage.serialize().length() + " bytes passes the budget: what it holds of "
              + Display.shown(leftOut) + " was left out (" + words(direction)
              + "). Raise ANTIPODE_BUDGET_BYTES (" + budget + " now).");
    }
    return fitted;
  }

  private static String text(Lineage lineage, TrustSettings trust, Direction direction) {
    String text = Judgement.outgoing(lineage.serialize(), trust, direction.purpose(), Instant.now());
    Observers.events().onLineageSized(direction.word(), text.length());
    return text;
  }

  /** Returns what leaves outside any scope, told where it is incomplete (SCOPE-31). */
  public static Lineage leavingOutside(Direction direction) {
    return ScopeLog.lineageOutside(words(direction), null);
  }

  /**
   * The scope's lineage as it may leave now; writes in flight are marked in the copy and counted (SCOPE-16).
   *
   * @throws dev.antipode.PendingWriteException under {@code on_pending=raise}, for tests; nothing else
   */
  public static Lineage leaving(LineageScope scope) {
    return outgoing(scope);
  }

  /** The same with a call to this host, as far as it is known: dry-run says who passes a lineage on (REC-18). */
  public static Lineage leavingWithCall(LineageScope scope, String target) {
    Lineage lineage = outgoing(scope);
    if (ProcessSettings.inForce().mode() == Mode.DRY_RUN) {
      Observers.events().onLineagePassedOn(scope, target);
    }
    return lineage;
  }

  private static Lineage outgoing(LineageScope scope) {
    Lineage lineage = scope.outgoing();
    scope.passingGaps().stream().map(Gap::reason).distinct().forEach(
        reason -> Observers.events().onLineageIncomplete(reason, "", LineageScope.current(), true));
    if (!scope.pending().isEmpty()) {
      // There is a record of the pending write itself.
      scope.pendingStores().forEach(
          store -> Observers.events().onLineageIncomplete("pending", store, scope, false));
    }
    return lineage;
  }
}
