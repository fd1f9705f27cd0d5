package dev.antipode.internal.diagnostics.history;

import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.observer.MessageObserver;
import dev.antipode.observer.ObservedScope;
import dev.antipode.observer.ObservedStore;
import dev.antipode.observer.Observer;
import dev.antipode.observer.ReadObserver;
import dev.antipode.observer.WriteObserver;
import java.util.Collection;
import java.util.List;

/** Has the recorder record what the lower rooms say, where a history is recorded (HIST-23). */
public final class HistoryObserver implements Observer {
  /** Make one; {@link java.util.ServiceLoader} does. */
  public HistoryObserver() {}

  @Override
  public void onSettingsChanged() {
    Recorder.lookAtStores();
  }

  @Override
  public void onStoreJoined(ObservedStore store) {
    Recorder recorder = Recorder.current();
    if (recorder != null) {
      recorder.notRead(store);
    }
  }

  @Override
  public void onScopeCopied(ObservedScope of, ObservedScope copy) {
    Recorder recorder = Recorder.current();
    if (recorder != null) {
      recorder.joined(of, copy);
    }
  }

  @Override
  public void onLineageReceived(ObservedScope scope, List<String> messages, Lineage lineage) {
    Recorder recorder = lineage.hasContent() || !messages.isEmpty() ? Recorder.current() : null;
    if (recorder != null) {
      recorder.received(scope, messages, lineage);
    }
  }

  @Override
  public boolean namesMessages() {
    return Recorder.isOn();
  }

  @Override
  public MessageObserver observeMessage(ObservedScope sender) {
    Recorder recorder = Recorder.current();
    return recorder == null ? null : recorder.message(sender);
  }

  @Override
  public ReadObserver observeRead(
      ObservedScope scope, ObservedStore store, Lineage lineage, Collection<Key> keys, boolean isSure) {
    Recorder recorder = scope == null || !store.records() ? null : Recorder.current();
    return recorder == null ? null : recorder.read(scope, store, lineage);
  }

  @Override
  public WriteObserver observeWrite(ObservedScope scope, ObservedStore store, Lineage lineage) {
    Recorder recorder = Recorder.current();
    return recorder == null ? null : recorder.write(scope, store, lineage);
  }
}
