"""Headers in and out, the OpenTelemetry propagator, responses, lineages at rest."""
