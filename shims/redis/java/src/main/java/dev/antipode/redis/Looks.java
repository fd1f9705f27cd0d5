package dev.antipode.redis;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The questions that go before or beside a read, and what their answers say, whatever client carries them. */
final class Looks {
  /** {@code INFO replication}. */
  static final CommandWords QUESTION = CommandWords.of("INFO", "replication");

  static final CommandWords MULTI = CommandWords.of("MULTI");
  static final CommandWords EXEC = CommandWords.of("EXEC");

  private Looks() {}

  /** Asks for the marks of these epochs. */
  static CommandWords marks(Binding binding, List<String> fields) {
    List<Object> words = new ArrayList<>(List.of("HMGET", binding.key()));
    words.addAll(fields);
    return CommandWords.of(words.toArray());
  }

  /** The questions before a read; between MULTI and EXEC where they have to be one step and that is possible. */
  static List<CommandWords> questions(Binding binding, List<String> fields, boolean multi) {
    List<CommandWords> asked = new ArrayList<>(List.of(QUESTION));
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
  static List<CommandWords> together(Binding binding, List<String> fields, CommandWords beside, CommandWords read) {
    List<CommandWords> asked = new ArrayList<>(List.of(MULTI, QUESTION));
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
  static ServerState seen(List<?> values, List<String> fields) {
    Replication replication = parsed(values.get(0));
    if (replication == null) {
      return null;
    }
    if (fields.isEmpty()) {
      return ServerState.of(replication, Map.of());
    }
    if (values.get(1) instanceof List<?> marks) {
      return ServerState.of(replication, Session.marks(fields, marks));
    }
    if (values.get(1) instanceof ServerError error && !Session.isUnreadable(error.code())) {
      return null;
    }
    return new ServerState(replication, Map.of(), "its marks cannot be read (" + words(values.get(1)) + ")");
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
