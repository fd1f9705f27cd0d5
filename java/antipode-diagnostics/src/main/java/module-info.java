/** Observers of the core: metrics, dry-run and recorded histories. */
module dev.antipode.diagnostics {
  requires dev.antipode.core;

  exports dev.antipode.internal.diagnostics.dryrun to dev.antipode.testing;
  exports dev.antipode.internal.diagnostics.history to dev.antipode.testing;
  exports dev.antipode.internal.diagnostics.telemetry to dev.antipode.testing;

  provides dev.antipode.observer.Observer with
      dev.antipode.internal.diagnostics.history.HistoryObserver,
      dev.antipode.internal.diagnostics.dryrun.DryRun,
      dev.antipode.internal.diagnostics.telemetry.Announcement,
      dev.antipode.internal.diagnostics.telemetry.TelemetryObserver;
}
