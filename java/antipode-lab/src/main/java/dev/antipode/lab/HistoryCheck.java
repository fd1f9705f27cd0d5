package dev.antipode.lab;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What {@code antipode check --history} says of recorded histories, of whichever languages.
 *
 * @param exit 0 consistent, 1 violated, 2 not known
 * @param violations how many reads are violations
 * @param text what it printed
 */
public record HistoryCheck(int exit, int violations, String text) {
  private static final Pattern VIOLATED = Pattern.compile("VIOLATED: (\\d+) violation");

  /**
   * Checks a folder.
   *
   * @throws LabException where the command has not ended within 50 s
   */
  public static HistoryCheck of(Path folder) {
    try {
      Path output = Files.createTempFile("antipode-check-", ".out");
      Path command = Repository.root().resolve(".venv/bin/antipode");
      Process process = new ProcessBuilder(command.toString(), "check", "--history", folder.toString())
          .redirectErrorStream(true).redirectOutput(output.toFile()).start();
      boolean hasEnded = process.waitFor(50, TimeUnit.SECONDS);
      process.destroyForcibly();
      String said = Files.readString(output);
      Files.delete(output);
      if (!hasEnded) {
        throw new LabException("antipode check", said);
      }
      Matcher violated = VIOLATED.matcher(said);
      return new HistoryCheck(process.exitValue(), violated.find() ? Integer.parseInt(violated.group(1)) : 0, said);
    } catch (IOException error) {
      throw new LabException("antipode check", error.toString());
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new LabException("antipode check", error.toString());
    }
  }
}
