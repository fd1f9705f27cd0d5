package dev.antipode.lab;

import java.nio.file.Files;
import java.nio.file.Path;

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
}
