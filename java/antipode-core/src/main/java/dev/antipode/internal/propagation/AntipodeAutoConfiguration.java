package dev.antipode.internal.propagation;

import dev.antipode.propagation.AntipodePropagator;
import dev.antipode.propagation.Carriers;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;
import java.util.Locale;

/**
 * Goes round the application's propagator of baggage, or of Jaeger's format, where the environment configures
 * OpenTelemetry: the lineage then travels along in that header (PROP-7, PROP-8).
 */
public final class AntipodeAutoConfiguration implements AutoConfigurationCustomizerProvider {
  /** For {@link java.util.ServiceLoader}. */
  public AntipodeAutoConfiguration() {}

  @Override
  public void customize(AutoConfigurationCustomizer configuration) {
    configuration.addPropagatorCustomizer((propagator, config) -> goRound(propagator));
  }

  private static TextMapPropagator goRound(TextMapPropagator propagator) {
    for (String field : propagator.fields()) {
      String name = field.toLowerCase(Locale.ROOT);
      if (name.equals(Carriers.BAGGAGE_HEADER) || name.equals(Gate.JAEGER_TRACE)) {
        return AntipodePropagator.round(propagator);
      }
    }
    return propagator;
  }
}
