package dev.antipode.testing;

import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.dryrun.Records;
import dev.antipode.internal.diagnostics.history.Recorder;
import dev.antipode.internal.diagnostics.telemetry.Announcement;
import dev.antipode.internal.diagnostics.telemetry.Telemetry;
import dev.antipode.internal.engine.BarrierLog;
import dev.antipode.internal.engine.FollowRegistry;
import dev.antipode.internal.scope.ScopeLog;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.Logs;
import dev.antipode.shim.RegisteredStore;

/**
 * A fresh registry, fresh settings (from the environment) and counts, until it is closed: for tests.
 *
 * <p>With JUnit use {@link AntipodeIsolated}. Tests that run at the same time in one process share all of it.
 */
public final class Isolated implements AutoCloseable {
  private final Registry before;
  private final BarrierLog logBefore;

  /** Begins. */
  public Isolated() {
    before = Registry.replace(new Registry());
    logBefore = BarrierLog.keep(new BarrierLog());
    reset();
  }

  private static void reset() {
    ProcessSettings.reset();
    Logs.reset();
    Announcement.reset();
    Telemetry.reset();
    ScopeLog.forgetLineages();
    Records.forget();
    Recorder.forget();
  }

  /** What was before is so again; the servers of what was registered meanwhile are given up. */
  @Override
  public void close() {
    FollowRegistry.forget();
    Records.forget();
    Recorder.forget();
    Registry.replace(before).all().forEach(RegisteredStore::forget);
    BarrierLog.keep(logBefore);
    ProcessSettings.reset();
    Telemetry.reset();
  }
}
