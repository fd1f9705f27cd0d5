package dev.antipode.observer;

import dev.antipode.internal.base.AnyOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;

/** The OpenTelemetry that observers report to: the process's global one, unless a framework gives another. */
public final class TelemetryTarget {
  private static volatile OpenTelemetry given;

  private TelemetryTarget() {}

  /** Report to this one from now on; null: to the global one. */
  public static void use(OpenTelemetry openTelemetry) {
    given = openTelemetry;
  }

  /** Return the one to report to. */
  public static OpenTelemetry openTelemetry() {
    OpenTelemetry own = given;
    return own != null ? own : AnyOpenTelemetry.global();
  }
}
