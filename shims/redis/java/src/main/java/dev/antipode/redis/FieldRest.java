package dev.antipode.redis;

import dev.antipode.StoreOptions;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Rest mode {@code field}: a hash's lineage in a field of its own, written in the same atomic step (SHIM-9).
 *
 * <p>A hash is written field by field, by many scopes: what rests beside it is the join of their lineages. A hash that is
 * deleted and written anew begins anew. The same field and script in every language.
 */
final class FieldRest extends LineagePlacement {
  /** The field. */
  static final String FIELD = "antipode";

  /** The script that writes: a field, a lineage, most bytes, and the command with its arguments behind the key. */
  static final String SCRIPT = Marks.resource("write-field.lua");

  private static final byte[] OCTETS = FIELD.getBytes(StandardCharsets.US_ASCII);
  private static final int MOST_BYTES = 3072; // past that a lineage at rest is marked incomplete
  private static final Set<String> WRITES = Set.of("HSET", "HMSET", "HSETNX", "HINCRBY", "HINCRBYFLOAT", "HDEL");
  private static final Set<String> READS = Set.of(
      "HGET", "HGETALL", "HMGET", "HKEYS", "HVALS", "HLEN", "HSCAN", "HEXISTS", "HSTRLEN", "HRANDFIELD");
  private static final String LENGTH =
      "return redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], ARGV[1])";

  FieldRest(StoreOptions options) {
    super(options);
  }

  @Override
  boolean writes(CommandWords command) {
    return command.size() > 1 && WRITES.contains(Commands.name(command));
  }

  @Override
  boolean answers(CommandWords command) {
    return command.size() > 1 && READS.contains(Commands.name(command));
  }

  /** The command that is sent for a hash write: the same one, with the lineage, in one atomic script. */
  @Override
  CommandWords written(CommandWords command, String lineage) {
    String name = Commands.name(command);
    if (lineage.isEmpty() && !name.equals("HDEL")) {
      return command;
    }
    List<byte[]> wire = new ArrayList<>(
        CommandWords.of("EVAL", SCRIPT, 1, command.get(1), FIELD, lineage, MOST_BYTES, name).copy());
    for (int place = 2; place < command.size(); place++) {
      wire.add(command.get(place));
    }
    return CommandWords.of(wire);
  }

  /** The command that is sent for a hash read, so that our field can be left out of its reply. */
  @Override
  CommandWords read(CommandWords command) {
    return switch (Commands.name(command)) {
      case "HVALS" -> CommandWords.of("HGETALL", command.get(1));
      case "HLEN" -> CommandWords.of("EVAL_RO", LENGTH, 1, command.get(1), FIELD);
      default -> command;
    };
  }

  @Override
  CommandWords asks(CommandWords command) {
    return CommandWords.of("HGET", command.get(1), FIELD);
  }

  @Override
  VisibleReply shown(CommandWords command, Object raw) {
    HiddenField hidden = hide(command, raw);
    return new VisibleReply(hidden.reply(), holdsRest(command) ? lineage(hidden.rest()) : null);
  }

  private record HiddenField(Object reply, byte[] rest) {}

  /** Whether what a read gives holds the lineage by itself. */
  private static boolean holdsRest(CommandWords command) {
    String name = Commands.name(command);
    return name.equals("HGETALL") || name.equals("HVALS");
  }

  /** A reply, not built yet, without our field. */
  private static HiddenField hide(CommandWords command, Object raw) {
    if (!(raw instanceof List<?> items)) {
      return new HiddenField(raw, null);
    }
    return switch (Commands.name(command)) {
      case "HGETALL" -> withoutPair(items, false);
      case "HVALS" -> withoutPair(items, true);
      case "HKEYS" -> new HiddenField(items.stream().filter(field -> !isOurs(field)).toList(), null);
      case "HSCAN" -> hideScanned(command, items);
      default -> new HiddenField(raw, null);
    };
  }

  private static HiddenField withoutPair(List<?> items, boolean valuesAlone) {
    List<Object> kept = new ArrayList<>(items.size());
    byte[] rest = null;
    int step = items.isEmpty() || items.get(0) instanceof Map.Entry<?, ?> ? 1 : 2; // RESP3 says pairs
    for (int place = 0; place + step <= items.size(); place += step) {
      boolean isPair = items.get(place) instanceof Map.Entry<?, ?>;
      Object field = isPair ? ((Map.Entry<?, ?>) items.get(place)).getKey() : items.get(place);
      Object value = isPair ? ((Map.Entry<?, ?>) items.get(place)).getValue() : items.get(place + 1);
      if (isOurs(field)) {
        rest = (byte[]) value;
      } else if (valuesAlone) {
        kept.add(value);
      } else {
        kept.addAll(items.subList(place, place + step));
      }
    }
    return new HiddenField(kept, rest);
  }

  private static HiddenField hideScanned(CommandWords command, List<?> reply) {
    if (reply.size() != 2 || !(reply.get(1) instanceof List<?> found)) {
      return new HiddenField(reply, null);
    }
    boolean isWithoutValues = false;
    for (int place = 2; place < command.size(); place++) {
      isWithoutValues |= Commands.word(command, place).equals("NOVALUES");
    }
    int step = isWithoutValues ? 1 : 2;
    List<Object> kept = new ArrayList<>(found.size());
    for (int place = 0; place + step <= found.size(); place += step) {
      if (!isOurs(found.get(place))) {
        kept.addAll(found.subList(place, place + step));
      }
    }
    return new HiddenField(List.of(reply.get(0), kept), null);
  }

  private static boolean isOurs(Object field) {
    return field instanceof byte[] octets && Arrays.equals(octets, OCTETS);
  }
}
