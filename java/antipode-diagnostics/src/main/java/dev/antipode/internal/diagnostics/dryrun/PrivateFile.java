package dev.antipode.internal.diagnostics.dryrun;

import dev.antipode.internal.base.ProcessSettings;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Stream;

/**
 * A file of this process alone, that nobody else may read (REC-25). It is made when it is first written, under another name where
 * there is a file or a link of its own already; never in a folder that holds as much as it may.
 */
public final class PrivateFile {
  private static final boolean IS_POSIX = FileSystems.getDefault().supportedFileAttributeViews().contains("posix");
  private static final Set<OpenOption> KNOWN =
      Set.of(StandardOpenOption.WRITE, StandardOpenOption.APPEND, LinkOption.NOFOLLOW_LINKS);
  private static final Set<OpenOption> NEW =
      Set.of(StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW, LinkOption.NOFOLLOW_LINKS);

  private Path path;
  private boolean isMade;

  /** One that is not made yet. */
  public PrivateFile(Path path) {
    this.path = path;
  }

  /** Return this one, or one of the same name in another folder. */
  PrivateFile in(Path folder) {
    return folder.equals(path.getParent()) ? this : new PrivateFile(folder.resolve(path.getFileName()));
  }

  /** Return where it is. */
  public Path path() {
    return path;
  }

  /** Return its size in bytes; 0 where it has not been made, or is gone. */
  public long size() throws IOException {
    try {
      return isMade ? Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS).size() : 0;
    } catch (NoSuchFileException gone) {
      return 0;
    }
  }

  /** Append this text, in UTF-8; throws where the disk or the folder's bound does not let it. */
  public void append(CharSequence text) throws IOException {
    try (OutputStream out = Channels.newOutputStream(opened())) {
      out.write(text.toString().getBytes(StandardCharsets.UTF_8));
    }
  }

  private SeekableByteChannel opened() throws IOException {
    if (isMade) {
      try {
        return Files.newByteChannel(path, KNOWN);
      } catch (NoSuchFileException gone) { // rotated away, or removed
        isMade = false;
      }
    }
    Path folder = path.getParent();
    Files.createDirectories(folder, only("rwx------"));
    long most = ProcessSettings.inForce().recordsFolderMib();
    if (sizeOf(folder) >= most << 20) {
      throw new IOException(
          "the folder " + folder + " holds " + most + " MiB (ANTIPODE_RECORDS_FOLDER_MIB): no new file is begun");
    }
    SeekableByteChannel made;
    try {
      made = Files.newByteChannel(path, NEW, only("rw-------"));
    } catch (FileAlreadyExistsException taken) {
      String name = path.getFileName().toString().replaceFirst("\\.jsonl$", "");
      path = path.resolveSibling(name + "-" + UUID.randomUUID().toString().substring(0, 8) + ".jsonl");
      made = Files.newByteChannel(path, NEW, only("rw-------"));
    }
    isMade = true;
    return made;
  }

  private static FileAttribute<?>[] only(String rights) {
    return IS_POSIX
        ? new FileAttribute<?>[] {PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(rights))}
        : new FileAttribute<?>[0];
  }

  private static long sizeOf(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      long size = 0;
      for (Path each : (Iterable<Path>) files::iterator) {
        try {
          size += Files.readAttributes(each, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS).size();
        } catch (NoSuchFileException gone) {
          continue; // another process rotates
        }
      }
      return size;
    }
  }
}
