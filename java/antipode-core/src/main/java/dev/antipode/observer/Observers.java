package dev.antipode.observer;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.ScopeKind;
import dev.antipode.WriteId;
import dev.antipode.shim.Logs;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * The observer port: the lower rooms say what happens, and none of them knows who listens. Telemetry, dry-run and the
 * recorder of histories are observers, found by {@link ServiceLoader} when the first event is told. The free path of a
 * barrier calls nobody: it adds to {@link Outcome#FREE}.
 */
public final class Observers {
  private static final int MOST_FAULTS = 10; // a list of providers that cannot be read at all must not be tried for ever

  private static final String DIAGNOSTICS = "dev.antipode.internal.diagnostics.";

  private static volatile List<Observer> observers = List.of();
  private static volatile Observer events = new Observer() {};

  static {
    List<Observer> found = found(Observer.class.getClassLoader());
    found.forEach(Observers::add);
    if (found.stream().noneMatch(each -> each.getClass().getName().startsWith(DIAGNOSTICS))) {
      add(new AbsentDiagnostics());
    }
  }

  private Observers() {}

  /** Return what is called: each event goes to every observer. */
  public static Observer events() {
    return events;
  }

  /** Have an observer take its events from now on. */
  public static synchronized void add(Observer observer) {
    List<Observer> more = new ArrayList<>(observers);
    more.add(observer);
    use(List.copyOf(more));
  }

  /** Have an observer take no events any more (tests). */
  public static synchronized void remove(Observer observer) {
    use(observers.stream().filter(each -> each != observer).toList());
  }

  private static void use(List<Observer> all) {
    observers = all;
    events = all.size() == 1 ? all.get(0) : new AllObservers(all);
  }

  /** Return the observers that jars name; one that cannot be loaded is said, and left out. */
  static List<Observer> found(ClassLoader loader) {
    List<Observer> found = new ArrayList<>();
    Iterator<Observer> providers = ServiceLoader.load(Observer.class, loader).iterator();
    for (int faults = 0; faults < MOST_FAULTS; faults++) {
      try {
        providers.forEachRemaining(found::add);
        return found;
      } catch (ServiceConfigurationError | LinkageError error) {
        Logs.error("AP601", "an observer cannot be loaded", error);
      }
    }
    return found;
  }

  /** Two who are told what becomes of a read. */
  private record BothReads(ReadObserver one, ReadObserver other) implements ReadObserver {
    @Override
    public void returned(ReadReply reply, WriteId covers) {
      one.returned(reply, covers);
      other.returned(reply, covers);
    }

    @Override
    public void failed() {
      one.failed();
      other.failed();
    }
  }

  /** Every observer, as one. */
  private record AllObservers(List<Observer> observers) implements Observer {
    private void tell(Consumer<Observer> event) {
      observers.forEach(event);
    }

    private boolean any(Predicate<Observer> question) {
      for (Observer each : observers) {
        if (question.test(each)) {
          return true;
        }
      }
      return false;
    }

    private <T> T first(Function<Observer, T> question) {
      for (Observer each : observers) {
        T answer = question.apply(each);
        if (answer != null) {
          return answer;
        }
      }
      return null;
    }

    @Override
    public void onWorkBegun() {
      tell(Observer::onWorkBegun);
    }

    @Override
    public void onSettingsChanged() {
      tell(Observer::onSettingsChanged);
    }

    @Override
    public void onScopeOpened(ScopeKind kind) {
      tell(each -> each.onScopeOpened(kind));
    }

    @Override
    public void onScopeCopied(ObservedScope of, ObservedScope copy) {
      tell(each -> each.onScopeCopied(of, copy));
    }

    @Override
    public void onStoreJoined(ObservedStore store) {
      tell(each -> each.onStoreJoined(store));
    }

    @Override
    public void onWriteBegun(String store) {
      tell(each -> each.onWriteBegun(store));
    }

    @Override
    public WriteObserver observeWrite(ObservedScope scope, ObservedStore store, Lineage lineage) {
      return first(each -> each.observeWrite(scope, store, lineage));
    }

    @Override
    public ReadObserver observeRead(
        ObservedScope scope, ObservedStore store, Lineage lineage, Collection<Key> keys, boolean isSure) {
      ReadObserver all = null;
      for (Observer each : observers) {
        ReadObserver own = each.observeRead(scope, store, lineage, keys, isSure);
        all = all == null || own == null ? (own == null ? all : own) : new BothReads(all, own);
      }
      return all;
    }

    @Override
    public boolean namesMessages() {
      return any(Observer::namesMessages);
    }

    @Override
    public MessageObserver observeMessage(ObservedScope sender) {
      return first(each -> each.observeMessage(sender));
    }

    @Override
    public void onLineageReceived(ObservedScope scope, List<String> messages, Lineage lineage) {
      tell(each -> each.onLineageReceived(scope, messages, lineage));
    }

    @Override
    public void onLineageDropped(String reason, String direction) {
      tell(each -> each.onLineageDropped(reason, direction));
    }

    @Override
    public void onLineageIncomplete(String reason, String store, ObservedScope scope, boolean isRecorded) {
      tell(each -> each.onLineageIncomplete(reason, store, scope, isRecorded));
    }

    @Override
    public void onIncompleteLineageReceived(String store, ObservedScope scope) {
      tell(each -> each.onIncompleteLineageReceived(store, scope));
    }

    @Override
    public void onLineageSized(String direction, int length) {
      tell(each -> each.onLineageSized(direction, length));
    }

    @Override
    public void onLineagePassedOn(ObservedScope scope, String target) {
      tell(each -> each.onLineagePassedOn(scope, target));
    }

    @Override
    public void onLineageLeftEarly(String site, List<WriteSite> uncommitted) {
      tell(each -> each.onLineageLeftEarly(site, uncommitted));
    }

    @Override
    public void onWriteConcurrent(String site, WriteSite write) {
      tell(each -> each.onWriteConcurrent(site, write));
    }

    @Override
    public void onWriteLost(String reason, String store, String site) {
      tell(each -> each.onWriteLost(reason, store, site));
    }

    @Override
    public void onWriteLate(String store, String site) {
      tell(each -> each.onWriteLate(store, site));
    }

    @Override
    public void onFallback(String outcome) {
      tell(each -> each.onFallback(outcome));
    }

    @Override
    public void onServerAsked(String store, String purpose) {
      tell(each -> each.onServerAsked(store, purpose));
    }

    @Override
    public void onMarksMissing(String store, String reason) {
      tell(each -> each.onMarksMissing(store, reason));
    }

    @Override
    public Consumer<FollowedBarrier.Ending> observeBarrier(FollowedBarrier barrier) {
      return first(each -> each.observeBarrier(barrier));
    }

    @Override
    public boolean wantsBarrierSites() {
      return any(Observer::wantsBarrierSites);
    }

    @Override
    public void onBarrierEnforced() {
      tell(Observer::onBarrierEnforced);
    }

    @Override
    public void onBarrierWaited(WaitedBarrier barrier) {
      tell(each -> each.onBarrierWaited(barrier));
    }
  }
}
