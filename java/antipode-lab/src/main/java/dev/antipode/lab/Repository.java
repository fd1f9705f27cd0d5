package dev.antipode.lab;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Where the tests' own repository is. */
public final class Repository {
  private Repository() {}

  /**
   * The repository's root: the nearest folder above the working one that holds the lab.
   *
   * @throws IllegalStateException where there is none
   */
  public static Path root() {
    for (Path folder = Path.of("").toAbsolutePath(); folder != null; folder = folder.getParent()) {
      if (Files.exists(folder.resolve("lab/pyproject.toml"))) {
        return folder;
      }
    }
    throw new IllegalStateException("not inside the repository: " + Path.of("").toAbsolutePath());
  }

  /** The interpreter that has Antipode for Python installed. */
  public static Path python() {
    return root().resolve(".venv/bin/python");
  }

  /**
   * What a program in Python prints, for tests of both languages on one store.
   *
   * @throws LabException where it fails, or has not ended within 50 s, with what it said
   */
  public static String runPython(String script, String... arguments) {
    List<String> command = new ArrayList<>(List.of(python().toString(), "-c", script));
    command.addAll(List.of(arguments));
    try {
      Path output = Files.createTempFile("antipode-python-", ".out");
      Path errors = Files.createTempFile("antipode-python-", ".err");
      Process process =
          new ProcessBuilder(command).redirectOutput(output.toFile()).redirectError(errors.toFile()).start();
      boolean hasEnded = process.waitFor(50, TimeUnit.SECONDS);
      process.destroyForcibly();
      String said = Files.readString(output).strip();
      String words = Files.readString(errors);
      Files.delete(output);
      Files.delete(errors);
      if (!hasEnded || process.exitValue() != 0) {
        throw new LabException("python", said + "\n" + words);
      }
      return said;
    } catch (IOException error) {
      throw new LabException("python", error.toString());
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new LabException("python", error.toString());
    }
  }
}
