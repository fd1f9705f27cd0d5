package dev.antipode.internal.propagation;

import dev.antipode.propagation.AntipodePropagator;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.autoconfigure.spi.ConfigProperties;
import io.opentelemetry.sdk.autoconfigure.spi.ConfigurablePropagatorProvider;

/** The word {@code antipode} of {@code OTEL_PROPAGATORS}, where the environment configures OpenTelemetry. */
public final class AntipodePropagatorProvider implements ConfigurablePropagatorProvider {
  /** For {@link java.util.ServiceLoader}. */
  public AntipodePropagatorProvider() {}

  @Override
  public TextMapPropagator getPropagator(ConfigProperties config) {
    return AntipodePropagator.beside();
  }

  @Override
  public String getName() {
    return "antipode";
  }
}
