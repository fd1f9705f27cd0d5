package dev.antipode.observer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Mode;
import dev.antipode.Settings;
import dev.antipode.internal.base.ProcessSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The core alone, on a class path without antipode-diagnostics: nobody takes a dry-run that nobody records for one. */
class AbsentDiagnosticsTest {
  private static final Logger LOGGER = Logger.getLogger("dev.antipode");

  private final List<String> lines = new ArrayList<>();
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

  @BeforeEach
  void listen() {
    LOGGER.addHandler(handler);
  }

  @AfterEach
  void putBack() {
    LOGGER.removeHandler(handler);
    ProcessSettings.environment(null);
    ProcessSettings.reset();
  }

  @Test
  void aSettingThatNeedsItIsToldOnce() {
    inScope();
    assertThat(lines).isEmpty();

    ProcessSettings.environment(Map.of("ANTIPODE_MODE", "dry-run"));
    inScope();
    inScope();
    assertThat(lines).containsExactly(
        "mode=dry-run records nothing: antipode-diagnostics is not on the class path. Add "
            + "dev.antipode:antipode-diagnostics. [AP605]");

    Antipode.configure(Settings.defaults().mode(Mode.DRY_RUN).history("antipode-history"));
    assertThat(lines).hasSize(2).last().asString().startsWith("history=antipode-history records nothing");
  }

  private static void inScope() {
    try (var scope = Antipode.scope()) {
      assertThat(scope.lineage().isEmpty()).isTrue();
    }
  }
}
