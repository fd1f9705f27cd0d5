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
final class FieldRest extends Beside {
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
  boolean writes(Words command) {
    return command.size() > 1 && WRITES.contains(Commands.name(command));
  }

  @Override
  boolean answers(Words command) {
    return command.size() > 1 && READS.contains(Commands.name(command));
  }

  /** The command that is sent for a hash write: the same one, with the lineage, in one atomic script. */
  @Override
  Words written(Words command, String lineage) {
    String name = Commands.name(command);
    if (lineage.isEmpty() && !name.equals("HDEL")) {
      return command;
    }
    List<byte[]> wire = new ArrayList<>(
        Words.of("EVAL", SCRIPT, 1, command.get(1), FIELD, lineage, MOST_BYTES, name).copy());
    for (int place = 2; place < command.size(); place++) {
      wire.add(command.get(place));
    }
    return Words.of(wire);
  }

  /** The command that is sent for a hash read, so that our field can be left out of its reply. */
  @Override
  Words read(Words command) {
    return switch (Commands.name(command)) {
      case "HVALS" -> Words.of("HGETALL", command.get(1));
      case "HLEN" -> Words.of("EVAL_RO", LENGTH, 1, command.get(1), FIELD);
      default -> command;
    };
  }

  @Override
  Words asks(Words command) {
    return Words.of("HGET", command.get(1), FIELD);
  }

  @Override
  Shown shown(Words command, Object raw) {
    Hidden hidden = hide(command, raw);
    return new Shown(hidden.reply(), holdsRest(command) ? lineage(hidden.rest()) : null);
  }

  private record Hidden(Object reply, byte[] rest) {}

  /** Whether what a read gives holds the lineage by itself. */
  private static boolean holdsRest(Words command) {
    String name = Commands.name(command);
    return name.equals("HGETALL") || name.equals("HVALS");
  }

  /** A reply, not built yet, without our field. */
  private static Hidden hide(Words command, Object raw) {
    if (!(raw instanceof List<?> items)) {
      return new Hidden(raw, null);
    }
    return switch (Commands.name(command)) {
      case "HGETALL" -> withoutPair(items, false);
      case "HVALS" -> withoutPair(items, true);
      case "HKEYS" -> new Hidden(items.stream().filter(field -> !isOurs(field)).toList(), null);
      case "HSCAN" -> hideScanned(command, items);
      default -> new Hidden(raw, null);
    };
  }

  private static Hidden withoutPair(List<?> items, boolean valuesAlone) {
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
    return new Hidden(kept, rest);
  }

  private static Hidden hideScanned(Words command, List<?> reply) {
    if (reply.size() != 2 || !(reply.get(1) instanceof List<?> found)) {
      return new Hidden(reply, null);
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
    return new Hidden(List.of(reply.get(0), kept), null);
  }

  private static boolean isOurs(Object field) {
    return field instanceof byte[] octets && Arrays.equals(octets, OCTETS);
  }
}
