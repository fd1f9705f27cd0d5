package dev.antipode.redis;

import dev.antipode.Ordered;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * What a server says of its place in replication ({@code INFO replication}).
 *
 * @param primary whether it takes writes for others
 * @param epoch its own history: the first digits of its replication id
 * @param offset what it has executed (a primary) or applied (a replica) of that history
 * @param before the history that it continued, if it knows one; else empty
 * @param beforeEnd where it left that history ({@code second_repl_offset}): it has all below. At a replica not the fork
 * @param backlog whether its offsets count: without a backlog they stand still
 * @param readOnly whether it refuses writes as a replica does
 * @param link whether a replica hears its primary; true for a primary
 */
record Replication(
    boolean primary,
    String epoch,
    long offset,
    String before,
    long beforeEnd,
    boolean backlog,
    boolean readOnly,
    boolean link) {
  /** So many hex digits of a replication id name an epoch. */
  static final int EPOCH_DIGITS = 16;

  private static final int HEAD = 40; // `txt:# Replication` and the role come first

  /** Where the data that it serves are; null where its offset says nothing about them. */
  Ordered position() {
    if (primary && !backlog) {
      return null;
    }
    if (!primary && offset <= 1) {
      return null; // it has never followed anybody: what it holds came from a file
    }
    return new Ordered(epoch, offset);
  }

  /** The same without the history before: while other data are being loaded, it still names the former parent. */
  Replication withoutBefore() {
    return new Replication(primary, epoch, offset, "", 0, backlog, readOnly, link);
  }

  /** The position after a write, cut out of a primary's answer; null where there is none or a full look is needed. */
  static Ordered positionOfPrimary(byte[] reply) {
    String text = text(reply);
    int role = text.indexOf("role:master\r");
    if (role < 0 || role > HEAD) {
      return null;
    }
    int id = text.indexOf("\nmaster_replid:", role);
    int at = text.indexOf("\nmaster_repl_offset:", id);
    int backlog = text.indexOf("\nrepl_backlog_active:1", at);
    if (id < 0 || at < 0 || backlog < 0) {
      return null;
    }
    int first = id + "\nmaster_replid:".length();
    int begin = at + "\nmaster_repl_offset:".length();
    int end = text.indexOf('\r', begin);
    try {
      return new Ordered(text.substring(first, first + EPOCH_DIGITS), Long.parseLong(text, begin, end, 10));
    } catch (NumberFormatException error) {
      return null;
    }
  }

  /**
   * The whole answer.
   *
   * @throws IllegalArgumentException for what is no answer to the question
   */
  static Replication parse(Object reply) {
    String text = reply instanceof byte[] octets ? text(octets) : String.valueOf(reply);
    Map<String, String> words = words(text);
    try {
      boolean primary = need(words, "role").equals("master");
      boolean backlog = "1".equals(words.get("repl_backlog_active"));
      // Without a backlog the word may be all that a failed full copy has left of that history (EPOCH-33).
      long second = backlog ? Long.parseLong(words.getOrDefault("second_repl_offset", "-1")) : -1;
      return new Replication(
          primary,
          cut(need(words, "master_replid")),
          // A replica with its link down still says here what it has applied; ROLE would say -1.
          Long.parseLong(need(words, primary ? "master_repl_offset" : "slave_repl_offset")),
          second > 0 ? cut(words.getOrDefault("master_replid2", "")) : "",
          Math.max(second, 0),
          backlog,
          !primary && words.getOrDefault("slave_read_only", "1").equals("1"),
          primary || "up".equals(words.get("master_link_status")));
    } catch (IllegalArgumentException error) {
      throw new IllegalArgumentException(
          "INFO replication answered something else: " + text.substring(0, Math.min(80, text.length())), error);
    }
  }

  /** The lines {@code name:value} of an answer to INFO. */
  static Map<String, String> words(String text) {
    Map<String, String> words = new HashMap<>();
    for (String line : text.split("\r?\n")) {
      int colon = line.indexOf(':');
      if (colon > 0) {
        words.put(line.substring(0, colon), line.substring(colon + 1));
      }
    }
    return words;
  }

  static String text(byte[] octets) {
    return new String(octets, StandardCharsets.ISO_8859_1);
  }

  private static String need(Map<String, String> words, String name) {
    String value = words.get(name);
    if (value == null) {
      throw new IllegalArgumentException("without " + name);
    }
    return value;
  }

  private static String cut(String id) {
    return id.length() > EPOCH_DIGITS ? id.substring(0, EPOCH_DIGITS) : id;
  }
}
