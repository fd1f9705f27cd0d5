/**
 * Metrics and spans of OpenTelemetry (chapter OBS of the specification). Begin with
 * {@link dev.antipode.internal.diagnostics.telemetry.TelemetryObserver}.
 */
package dev.antipode.internal.diagnostics.telemetry;
