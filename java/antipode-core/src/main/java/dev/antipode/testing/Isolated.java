package dev.antipode.testing;

import dev.antipode.Logs;
import dev.antipode.ScopeLog;
import dev.antipode.barrier.BarrierLog;
import dev.antipode.barrier.Following;
import dev.antipode.configuration.ProcessSettings;
import dev.antipode.history.Recorder;
import dev.antipode.records.Records;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.Registry;
import dev.antipode.telemetry.Announcement;
import dev.antipode.telemetry.Telemetry;

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
    Following.forget();
    Records.forget();
    Recorder.forget();
    Registry.replace(before).all().forEach(RegisteredStore::forget);
    BarrierLog.keep(logBefore);
    ProcessSettings.reset();
    Telemetry.reset();
  }
}
