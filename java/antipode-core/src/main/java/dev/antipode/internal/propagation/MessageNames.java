package dev.antipode.internal.propagation;

import dev.antipode.Lineage;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** The extension {@code _.msg.<id>}, by which a lineage that leaves names its message while it is recorded (HIST-30). */
public final class MessageNames {
  private static final String TAG = "_.msg";
  private static final Pattern NAME = Pattern.compile("_\\.msg\\.([0-9a-zA-Z]{1,40})");

  private MessageNames() {}

  /**
   * A lineage that came in, without the names of messages.
   *
   * @param lineage the rest
   * @param messages the names
   */
  public record NamedLineage(Lineage lineage, List<String> messages) {}

  /** A lineage that leaves with this message, and names it. */
  public static Lineage named(Lineage lineage, String message) {
    List<String> extensions = new ArrayList<>(lineage.extensions());
    extensions.add(TAG + "." + message);
    return lineage.withExtensions(extensions);
  }

  /** Takes the names out of a lineage that came in; what is no name is dropped. */
  public static NamedLineage take(Lineage lineage) {
    if (lineage.extensions().isEmpty()) {
      return new NamedLineage(lineage, List.of());
    }
    List<String> rest = new ArrayList<>();
    List<String> messages = new ArrayList<>();
    for (String extension : lineage.extensions()) {
      var name = NAME.matcher(extension);
      if (name.matches()) {
        messages.add(name.group(1));
      } else if (!extension.equals(TAG) && !extension.startsWith(TAG + ".")) {
        rest.add(extension);
      }
    }
    return new NamedLineage(lineage.withExtensions(rest), messages);
  }
}
