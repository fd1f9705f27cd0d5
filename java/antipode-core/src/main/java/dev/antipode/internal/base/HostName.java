package dev.antipode.internal.base;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;

/** This machine's name, from where nothing has to be resolved: the first record is made in an application's thread. */
public final class HostName {
  private HostName() {}

  /** Its name, of the characters that a file's name may have everywhere. */
  public static String own() {
    String known = read(Path.of("/proc/sys/kernel/hostname"));
    if (known == null) {
      known = System.getenv("COMPUTERNAME");
    }
    if (known == null || known.isBlank()) {
      try {
        known = InetAddress.getLocalHost().getHostName();
      } catch (UnknownHostException unnamed) {
        known = "localhost";
      }
    }
    return known.strip().replaceAll("[^A-Za-z0-9._-]", "_"); // it is part of a file's name
  }

  private static String read(Path file) {
    try {
      String text = Files.readString(file).strip();
      return text.isEmpty() ? null : text;
    } catch (IOException | SecurityException absent) {
      return null;
    }
  }
}
