package dev.antipode.redis;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The questions that go before or beside a read, and what their answers say, whatever client carries them. */
final class Looks {
  /** {@code INFO replication}. */
  static final Words QUESTION = Words.of("INFO", "replication");

  static final Words MULTI = Words.of("MULTI");
  static final Words EXEC = Words.of("EXEC");

  private Looks() {}

  /** Asks for the marks of these epochs. */
  static Words marks(Binding binding, List<String> fields) {
    List<Object> words = new ArrayList<>(List.of("HMGET", binding.key()));
    words.addAll(fields);
    return Words.of(words.toArray());
  }

  /** The questions before a read; between MULTI and EXEC where they have to be one step and that is possible. */
  static List<Words> questions(Binding binding, List<String> fields, boolean multi) {
    List<Words> asked = new ArrayList<>(List.of(QUESTION));
    if (!fields.isEmpty()) {
      asked.add(marks(binding, fields));
      if (multi) {
        asked.add(0, MULTI);
        asked.add(EXEC);
      }
    }
    return asked;
  }

  /** The answers among the replies to these questions: those of EXEC, or all; null where EXEC failed. */
  static List<?> answers(List<?> replies, List<String> fields, boolean multi) {
    Object values = multi && !fields.isEmpty() ? replies.get(replies.size() - 1) : replies;
    return values instanceof List<?> list ? list : null;
  }

  /** A read between the questions, in one atomic step. */
  static List<Words> together(Binding binding, List<String> fields, Words beside, Words read) {
    List<Words> asked = new ArrayList<>(List.of(MULTI, QUESTION));
    if (!fields.isEmpty()) {
      asked.add(marks(binding, fields));
    }
    if (beside != null) {
      asked.add(beside);
    }
    asked.add(read);
    asked.add(EXEC);
    return asked;
  }

  /** What the answers say; null where the server refuses to say where it is. Errors are of type ServerError. */
  static Seen seen(List<?> values, List<String> fields) {
    Replication replication = parsed(values.get(0));
    if (replication == null) {
      return null;
    }
    if (fields.isEmpty()) {
      return Seen.of(replication, Map.of());
    }
    if (values.get(1) instanceof List<?> marks) {
      return Seen.of(replication, Session.marks(fields, marks));
    }
    if (values.get(1) instanceof ServerError error && !Session.isUnreadable(error.code())) {
      return null;
    }
    return new Seen(replication, Map.of(), "its marks cannot be read (" + words(values.get(1)) + ")");
  }

  /** The first error among answers, in words. */
  static String refusal(List<?> replies) {
    return words(replies.stream().filter(ServerError.class::isInstance).findFirst().orElse(null));
  }

  private static String words(Object error) {
    return error instanceof Exception thrown ? String.valueOf(thrown.getMessage()) : String.valueOf(error);
  }

  /** The answer to the question; null where it is an error or none came. */
  static Replication parsed(Object reply) {
    if (!(reply instanceof byte[])) {
      return null;
    }
    try {
      return Replication.parse(reply);
    } catch (IllegalArgumentException error) {
      return null;
    }
  }
}
