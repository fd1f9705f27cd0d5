package dev.antipode;

import dev.antipode.observer.TelemetryTarget;
import dev.antipode.shim.Logs;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.data.LongPointData;
import io.opentelemetry.sdk.testing.exporter.InMemoryMetricReader;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** What is logged and counted until it is closed. */
public final class Observed implements AutoCloseable {
  private static final Logger LOGGER = Logger.getLogger("dev.antipode");

  private final List<String> lines = new CopyOnWriteArrayList<>();
  private final InMemoryMetricReader metrics = InMemoryMetricReader.create();
  private final OpenTelemetrySdk sdk = OpenTelemetrySdk.builder()
      .setMeterProvider(SdkMeterProvider.builder().registerMetricReader(metrics).build())
      .build();
  private final Handler handler = new Handler() {
    @Override
    public void publish(LogRecord line) {
      lines.add(line.getMessage());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  };

  public Observed() {
    Logs.reset();
    LOGGER.addHandler(handler);
    TelemetryTarget.use(sdk);
  }

  /** The lines of the logger, in order. */
  public List<String> lines() {
    return lines;
  }

  /** All lines that hold a word. */
  public List<String> linesWith(String word) {
    return lines.stream().filter(line -> line.contains(word)).toList();
  }

  /** What a counter has counted with these attributes, their names without the prefix. */
  public long count(String instrument, Map<String, String> attributes) {
    return metrics.collectAllMetrics().stream()
        .filter(metric -> metric.getName().equals(instrument))
        .flatMap(metric -> metric.getLongSumData().getPoints().stream())
        .filter(point -> matches(point.getAttributes(), attributes))
        .mapToLong(LongPointData::getValue)
        .sum();
  }

  private static boolean matches(Attributes found, Map<String, String> wanted) {
    Map<String, String> plain = new java.util.HashMap<>();
    found.forEach((key, value) -> plain.put(key.getKey().replaceFirst("^antipode\\.", ""), value.toString()));
    return plain.entrySet().containsAll(wanted.entrySet());
  }

  @Override
  public void close() {
    TelemetryTarget.use(null);
    LOGGER.removeHandler(handler);
    sdk.close();
  }
}
