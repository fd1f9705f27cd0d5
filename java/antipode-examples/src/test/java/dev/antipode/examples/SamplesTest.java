package dev.antipode.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The samples print what those of every language print, octet by octet. */
class SamplesTest {
  private static final String LATE = "without a barrier: Hello"; // the machine was too busy to read before the lag was over
  private static final int MOST_TURNS = 10;
  private static final Path SAMPLES = Path.of(System.getProperty("antipode.spec"), "samples");

  @ParameterizedTest
  @CsvSource({"basic, dev.antipode.examples.Basic", "post_notification, dev.antipode.examples.PostNotification"})
  void prints_what_every_language_prints(String sample, String program, @TempDir Path folder) throws Exception {
    Path printed = folder.resolve("printed");
    run(program, printed, folder.resolve("complained"));
    for (int turn = 1; turn < MOST_TURNS && Files.readString(printed).contains(LATE); turn++) {
      run(program, printed, folder.resolve("complained"));
    }
    assertThat(printed).hasSameBinaryContentAs(SAMPLES.resolve(sample + ".txt"));
  }

  private static void run(String program, Path printed, Path complained) throws Exception {
    var builder = new ProcessBuilder(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-cp", System.getProperty("java.class.path"), program);
    builder.environment().keySet().removeIf(name -> name.startsWith("ANTIPODE_"));
    Process run = builder.redirectOutput(printed.toFile()).redirectError(complained.toFile()).start();
    try {
      assertThat(run.waitFor(50, TimeUnit.SECONDS)).as("it ended").isTrue();
    } finally {
      run.destroyForcibly();
    }
    // Of java.util.logging the console shows what is informative, too.
    assertThat(Files.readString(complained)).doesNotContain("WARNING", "SEVERE", "Exception");
    assertThat(run.exitValue()).isZero();
  }
}
