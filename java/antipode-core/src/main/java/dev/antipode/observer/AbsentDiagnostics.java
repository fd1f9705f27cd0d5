package dev.antipode.observer;

import dev.antipode.ConfigurationException;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.Mode;
import dev.antipode.ScopeKind;
import dev.antipode.Settings;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.shim.Logs;
import java.util.Collection;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/** Stands where antipode-diagnostics is missing, and says so once where a setting asks for it: a lost dry-run is not silent. */
final class AbsentDiagnostics implements Observer {
  private final Set<String> told = ConcurrentHashMap.newKeySet();

  @Override
  public void onWorkBegun() {
    look();
  }

  @Override
  public void onSettingsChanged() {
    look();
  }

  @Override
  public void onScopeOpened(ScopeKind kind) {
    look();
  }

  @Override
  public void onStoreJoined(ObservedStore store) {
    look(store);
  }

  @Override
  public ReadObserver observeRead(
      ObservedScope scope, ObservedStore store, Lineage lineage, Collection<Key> keys, boolean isSure) {
    look(store);
    return null;
  }

  @Override
  public Consumer<FollowedBarrier.Ending> observeBarrier(FollowedBarrier barrier) {
    look();
    return null;
  }

  private void look(ObservedStore store) {
    look();
    if (store.isDryRun()) {
      tell("mode=" + Mode.DRY_RUN);
    }
  }

  private void look() {
    Settings now;
    try {
      now = ProcessSettings.inForce();
    } catch (ConfigurationException error) { // the caller's own look says so
      return;
    }
    if (now.mode() == Mode.DRY_RUN) {
      tell("mode=" + now.mode());
    }
    if (!now.history().isEmpty()) {
      tell("history=" + now.history());
    }
  }

  private void tell(String setting) {
    if (told.add(setting)) {
      Logs.warn(
          "AP605",
          "diagnostics " + setting,
          setting + " records nothing: antipode-diagnostics is not on the class path. Add dev.antipode:antipode-diagnostics.");
    }
  }
}
