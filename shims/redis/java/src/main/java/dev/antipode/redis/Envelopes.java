package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.StoreOptions;
import dev.antipode.observer.Observers;
import dev.antipode.shim.LineageAtRest;
import dev.antipode.shim.Envelope;
import dev.antipode.shim.Logs;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/**
 * Rest mode {@code envelope}: string values of chosen keys hold their lineage (SHIM-34 to SHIM-37). These commands write a
 * value whole, so what rests with it is the lineage of that one write.
 */
final class Envelopes extends LineagePlacement {
  // Commands that write one whole value, and where it stands.
  private static final Map<String, Integer> VALUES = Map.of("SET", 2, "SETNX", 2, "GETSET", 2, "SETEX", 3, "PSETEX", 3);
  private static final Set<String> MANY = Set.of("MSET", "MSETNX");
  // Commands that answer with one whole value; MGET answers with many, and SET with one where it says GET.
  private static final Set<String> ANSWERS = Set.of("GET", "GETDEL", "GETEX", "GETSET");
  // Commands of one key that see or change the octets inside a value.
  private static final Set<String> REFUSED = Set.of(
      "APPEND", "BITCOUNT", "BITFIELD", "BITFIELD_RO", "BITPOS", "DECR", "DECRBY", "DELEX", "DIGEST", "GETBIT",
      "GETRANGE", "INCR", "INCRBY", "INCRBYFLOAT", "INCREX", "SETBIT", "SETRANGE", "STRLEN", "SUBSTR");
  private static final Set<String> COMPARING = Set.of("IFEQ", "IFNE", "IFDEQ", "IFDNE");
  private static final Set<String> MOVING = Set.of("RENAME", "RENAMENX", "COPY");

  private final String pattern;
  private final Predicate<byte[]> matches;

  Envelopes(StoreOptions options) {
    super(options);
    this.pattern = options.envelopeKeys();
    this.matches = KeyPattern.of(pattern.getBytes(StandardCharsets.UTF_8));
  }

  @Override
  void check(CommandWords command) {
    String name = Commands.name(command);
    for (byte[] key : refused(name, command)) {
      if (matches.test(key)) {
        throw new ConfigurationException(
            "AP505",
            "%s cannot be used with \"%s\": keys that match \"%s\" hold the value and its lineage in an envelope "
                    .formatted(name, new String(key, StandardCharsets.UTF_8), pattern)
                + "(rest(ENVELOPE)). Read the value and SET it, or leave the key out of envelopeKeys");
      }
    }
  }

  /** Its keys that must be none of ours. */
  private List<byte[]> refused(String name, CommandWords command) {
    if (REFUSED.contains(name) || (name.equals("SET") && hasOption(command, COMPARING))) {
      return from(command, 1, 2, 1);
    }
    if (MOVING.contains(name)) {
      return command.size() > 2 && !matches.test(command.get(2)) ? from(command, 1, 2, 1) : List.of();
    }
    return switch (name) {
      case "BITOP" -> from(command, 2, command.size(), 1);
      case "LCS" -> from(command, 1, 3, 1);
      case "MSETEX" -> from(command, 2, command.size(), 2);
      default -> List.of();
    };
  }

  private static List<byte[]> from(CommandWords command, int first, int end, int step) {
    List<byte[]> keys = new ArrayList<>();
    for (int place = first; place < Math.min(end, command.size()); place += step) {
      keys.add(command.get(place));
    }
    return keys;
  }

  private static boolean hasOption(CommandWords command, Set<String> wanted) {
    for (int place = 3; place < command.size(); place++) {
      if (wanted.contains(Commands.word(command, place))) {
        return true;
      }
    }
    return false;
  }

  @Override
  boolean writes(CommandWords command) {
    String name = Commands.name(command);
    Integer place = VALUES.get(name);
    if (place != null) {
      return command.size() > place && matches.test(command.get(1));
    }
    return MANY.contains(name) && from(command, 1, command.size(), 2).stream().anyMatch(matches);
  }

  @Override
  boolean answers(CommandWords command) {
    String name = Commands.name(command);
    if (ANSWERS.contains(name) || (name.equals("SET") && hasOption(command, Set.of("GET")))) {
      return command.size() > 1 && matches.test(command.get(1));
    }
    return name.equals("MGET") && from(command, 1, command.size(), 1).stream().anyMatch(matches);
  }

  @Override
  CommandWords written(CommandWords command, String text) {
    List<byte[]> words = command.copy();
    Integer only = VALUES.get(Commands.name(command));
    if (only != null) {
      words.set(only, Envelope.close(words.get(only), text));
      return CommandWords.of(words);
    }
    for (int place = 1; place < words.size() - 1; place += 2) {
      if (matches.test(words.get(place))) {
        words.set(place + 1, Envelope.close(words.get(place + 1), text));
      }
    }
    return CommandWords.of(words);
  }

  @Override
  VisibleReply shown(CommandWords command, Object reply) {
    if (!Commands.name(command).equals("MGET")) {
      return opened(reply);
    }
    if (!(reply instanceof List<?> values) || values.size() != command.size() - 1) {
      return new VisibleReply(reply, Lineage.EMPTY);
    }
    List<Object> shown = new ArrayList<>(values.size());
    Lineage lineage = Lineage.EMPTY;
    for (int place = 0; place < values.size(); place++) {
      VisibleReply each = matches.test(command.get(place + 1))
          ? opened(values.get(place))
          : new VisibleReply(values.get(place), Lineage.EMPTY);
      shown.add(each.reply());
      lineage = lineage.union(each.lineage());
    }
    return new VisibleReply(shown, lineage);
  }

  private VisibleReply opened(Object raw) {
    if (!(raw instanceof byte[] octets)) {
      return new VisibleReply(raw, Lineage.EMPTY);
    }
    Envelope.OpenedEnvelope opened = Envelope.open(octets);
    if (!opened.fault().isEmpty()) {
      Observers.events().onLineageDropped("malformed", "message_in");
      Observers.events().onLineageIncomplete("malformed", store(), LineageScope.current(), true);
      Logs.warn(
          "AP405",
          "envelope " + store(),
          "a value of " + store() + " is " + opened.fault()
              + ": the application gets it as it stands, and what it depends on is missing.",
          "dropped");
      return new VisibleReply(octets, lineageIn() ? Lineage.EMPTY.markedIncomplete(store()) : Lineage.EMPTY);
    }
    return new VisibleReply(opened.value(), LineageAtRest.lineage(opened.text(), store(), lineageIn()));
  }
}
