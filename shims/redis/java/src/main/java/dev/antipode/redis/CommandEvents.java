package dev.antipode.redis;

import dev.antipode.Key;
import dev.antipode.observer.KeyChange;
import dev.antipode.observer.Content;
import dev.antipode.shim.ReadValue;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Tells a recorded history of commands: which keys they changed, and which keys a read found empty (HIST-28, HIST-37).
 *
 * <p>Of SET and its like, and of counters, a history has that the key holds something. Of other commands it has which key they
 * changed. Of a read that found something nobody knows which write it saw.
 */
final class CommandEvents {
  /** In place of the keys that a write changed: nobody knows which. */
  static final List<KeyChange> UNKNOWN = List.of(new KeyChange(Key.EMPTY));

  // Writes that change their first key, and no other.
  private static final Set<String> ONE_KEY = words("""
      APPEND BITFIELD EXPIRE EXPIREAT GEOADD GETEX HDEL HINCRBY HINCRBYFLOAT HMSET HSET HSETNX INCRBYFLOAT LINSERT LPOP
      LPUSH LPUSHX LREM LSET LTRIM PEXPIRE PEXPIREAT PFADD RPOP RPUSH RPUSHX SADD SDIFFSTORE SETBIT SETRANGE SINTERSTORE
      SPOP SREM SUNIONSTORE XACK XADD XDEL XSETID XTRIM ZADD ZDIFFSTORE ZINCRBY ZINTERSTORE ZPOPMAX ZPOPMIN ZREM
      ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE
      """);
  private static final Set<String> EXPIRING = words("EX PX EXAT PXAT KEEPTTL");
  private static final Set<String> WITH_A_NUMBER = words("EX PX EXAT PXAT");
  private static final Set<String> IF_THERE = words("NX XX");
  private static final Set<String> NO_KEY = words("DBSIZE KEYS RANDOMKEY SCAN");

  private CommandEvents() {}

  private static Set<String> words(String names) {
    return Set.of(names.strip().split("\\s+"));
  }

  // Writes

  /** What a write does if it happens and no reply says more; {@link #UNKNOWN} where nobody knows. */
  static List<KeyChange> changes(CommandWords command) {
    String name = Commands.name(command);
    return switch (name) {
      case "SET" -> set(command);
      case "SETEX", "PSETEX" -> List.of(there(command, 1, true));
      case "SETNX", "GETSET", "INCR", "INCRBY", "DECR", "DECRBY" -> List.of(there(command, 1, false));
      case "MSET", "MSETNX" -> pairs(command);
      case "DEL", "UNLINK", "GETDEL" -> gone(command);
      case "PERSIST" -> List.of();
      default -> ONE_KEY.contains(name) ? List.of(new KeyChange(key(command, 1))) : UNKNOWN;
    };
  }

  /**
   * What it has done, by its reply.
   *
   * @param before what {@link #changes} said
   * @param reply as it came: octets, a number, a truth value, a list or null
   */
  static List<KeyChange> changed(List<KeyChange> before, CommandWords command, Object reply) {
    boolean isNothing = reply instanceof Long number && number == 0 || Boolean.FALSE.equals(reply);
    return switch (Commands.name(command)) {
      case "SETNX", "MSETNX", "DEL", "UNLINK" -> isNothing ? List.of() : before;
      case "GETDEL" -> reply == null ? List.of() : before;
      case "SET" -> reply == null && isConditional(command) ? List.of() : before;
      default -> before;
    };
  }

  private static List<KeyChange> set(CommandWords command) {
    Set<String> given = options(command);
    boolean expires = given.stream().anyMatch(EXPIRING::contains);
    boolean conditional = given.stream().anyMatch(IF_THERE::contains);
    boolean answersValue = given.remove("GET");
    given.removeAll(EXPIRING);
    given.removeAll(IF_THERE);
    if (!given.isEmpty() || answersValue && conditional) { // its reply does not say whether it was set
      return List.of(new KeyChange(key(command, 1)));
    }
    return List.of(there(command, 1, expires));
  }

  private static boolean isConditional(CommandWords command) {
    Set<String> given = options(command);
    return !given.contains("GET") && given.stream().anyMatch(IF_THERE::contains);
  }

  private static Set<String> options(CommandWords command) {
    Set<String> given = new HashSet<>();
    for (int place = 3; place < command.size(); place++) {
      String word = Commands.word(command, place);
      given.add(word);
      if (WITH_A_NUMBER.contains(word)) {
        place++;
      }
    }
    return given;
  }

  private static List<KeyChange> pairs(CommandWords command) {
    List<KeyChange> all = new ArrayList<>();
    for (int place = 1; place + 1 < command.size(); place += 2) {
      all.add(there(command, place, false));
    }
    return all;
  }

  private static List<KeyChange> gone(CommandWords command) {
    List<KeyChange> all = new ArrayList<>();
    for (int place = 1; place < command.size(); place++) {
      all.add(new KeyChange(key(command, place), Content.NOTHING));
    }
    return all;
  }

  private static KeyChange there(CommandWords command, int place, boolean expires) {
    return new KeyChange(key(command, place), Content.SOMETHING, expires);
  }

  private static Key key(CommandWords command, int place) {
    return Key.of(command.get(place));
  }

  // Reads

  /** What a read found under which keys, by its reply as the application gets it. Never throws. */
  static List<ReadValue> seen(CommandWords command, Object reply) {
    try {
      return found(command, reply);
    } catch (RuntimeException odd) {
      return List.of(new ReadValue(Key.EMPTY, Content.UNKNOWN)); // it read something
    }
  }

  private static List<ReadValue> found(CommandWords command, Object reply) {
    String name = Commands.name(command);
    int size = command.size();
    if (NO_KEY.contains(name) || size < 2) {
      return List.of(new ReadValue(Key.EMPTY, Content.UNKNOWN));
    }
    if (name.equals("GET")) {
      return List.of(seen(command, 1, reply == null));
    }
    boolean areNone = name.equals("EXISTS") && reply instanceof Long number && number == 0;
    if (!areNone && !name.equals("MGET")) {
      return List.of(new ReadValue(key(command, 1), Content.UNKNOWN));
    }
    List<?> values = reply instanceof List<?> list && list.size() == size - 1 ? list : null;
    List<ReadValue> seen = new ArrayList<>(size - 1);
    for (int place = 1; place < size; place++) {
      seen.add(seen(command, place, areNone || values != null && values.get(place - 1) == null));
    }
    return seen;
  }

  private static ReadValue seen(CommandWords command, int place, boolean isNothing) {
    Key key = key(command, place);
    return new ReadValue(key, isNothing ? Content.NOTHING : Content.UNKNOWN);
  }
}
