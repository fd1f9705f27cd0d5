package dev.antipode.internal.diagnostics.dryrun;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.Antipode;
import dev.antipode.Settings;
import dev.antipode.testing.AntipodeIsolated;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Files of records and histories on a real disk (REC-25). */
@ExtendWith(AntipodeIsolated.class)
class PrivateFileTest {
  @TempDir
  Path root;

  private static String rights(Path path) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path, LinkOption.NOFOLLOW_LINKS));
  }

  @Test
  void nobodyElseReadsIt_REC_25() throws IOException {
    PrivateFile file = new PrivateFile(root.resolve("made/here/a.jsonl"));
    assertThat(file.size()).isZero();
    file.append("one\n");
    file.append("é\n");
    assertThat(Files.readString(file.path())).isEqualTo("one\né\n");
    assertThat(file.size()).isEqualTo(7);
    assertThat(rights(file.path())).isEqualTo("rw-------");
    assertThat(rights(file.path().getParent())).isEqualTo("rwx------");
    Files.delete(file.path());
    file.append("two\n");
    assertThat(Files.readString(file.path())).isEqualTo("two\n");
  }

  /** Under a name that can be foreseen somebody may have put a link, or a file. */
  @Test
  void nothingThatIsThereIsWrittenTo_REC_25() throws IOException {
    Path secret = Files.writeString(root.resolve("secret"), "theirs");
    Path folder = Files.createDirectory(root.resolve("records"));
    for (String name : List.of("link.jsonl", "dangling.jsonl", "file.jsonl")) {
      Path planted = folder.resolve(name);
      if (name.startsWith("file")) {
        Files.writeString(planted, "theirs");
      } else {
        Files.createSymbolicLink(planted, name.startsWith("link") ? secret : root.resolve("nowhere"));
      }
      PrivateFile file = new PrivateFile(planted);
      file.append("ours");
      assertThat(file.path()).isNotEqualTo(planted).hasContent("ours");
      assertThat(file.path().getFileName().toString()).endsWith(".jsonl");
      file.append("!");
      assertThat(file.path()).hasContent("ours!");
    }
    assertThat(secret).hasContent("theirs");
    assertThat(root.resolve("nowhere")).doesNotExist();
    PrivateFile swapped = new PrivateFile(folder.resolve("swapped.jsonl"));
    swapped.append("ours");
    Files.delete(swapped.path());
    Files.createSymbolicLink(swapped.path(), secret);
    assertThatThrownBy(() -> swapped.append("ours")).isInstanceOf(IOException.class);
    assertThat(secret).hasContent("theirs");
  }

  @Test
  void theFolderHasABound_REC_25() throws IOException {
    Antipode.configure(Settings.defaults().recordsFolderMib(1));
    PrivateFile first = new PrivateFile(root.resolve("a.jsonl"));
    first.append("x".repeat(1 << 20));
    first.append("it goes on");
    PrivateFile second = new PrivateFile(root.resolve("b.jsonl"));
    assertThatThrownBy(() -> second.append("x"))
        .isInstanceOf(IOException.class).hasMessageContaining("ANTIPODE_RECORDS_FOLDER_MIB");
    try (Stream<Path> files = Files.list(root)) {
      assertThat(files).hasSize(1);
    }
  }
}
