package dev.antipode.redis;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** How a read is sent once more in dry-run, on a connection of our own (REC-14). */
final class ReadRepeater {
  // Reads without side effects that say the same of the same data: no random ones, none of times, none whose order is that
  // of a table (HKEYS), and no scripts. The same in every language.
  private static final Set<String> NAMES = Set.of("""
      BITCOUNT BITFIELD_RO BITPOS EXISTS GEODIST GEOHASH GEOPOS GET GETBIT GETRANGE HEXISTS HGET HGETALL HLEN HMGET
      HSTRLEN LCS LINDEX LLEN LPOS LRANGE MGET SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER STRLEN
      SUBSTR SUNION TYPE XLEN XRANGE XREVRANGE ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK
      ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCORE
      """.strip().split("\\s+"));

  private ReadRepeater() {}

  /** Makes of a reply what the application got. */
  @FunctionalInterface
  interface ReplyBuilder {
    Object of(Object reply) throws Exception;
  }

  /** Whether a command may be sent once more: not to a role, whose server may be another one then. */
  static boolean mayRepeat(Binding binding, CommandWords command) {
    return NAMES.contains(Commands.name(command)) && !binding.target().moves();
  }

  /** Sends a command once more and gives its reply as the application would get it. */
  static Object again(Binding binding, CommandWords command, ReplyBuilder built) throws Exception {
    int timeout = (int) binding.server().askTimeout().toMillis();
    Object reply;
    try (Session session = new Session(binding.target(), timeout)) {
      reply = session.ask(Resp.pack(binding.beside().wire(command, null).copy().toArray())).get(0);
    }
    if (reply instanceof ServerError error) {
      throw error;
    }
    Object plain = plain(reply);
    return built.of(binding.beside().answers(command) ? binding.beside().shown(command, plain).reply() : plain);
  }

  /** A map as RESP 2 has it, names and values in turn: every client takes that. */
  private static Object plain(Object reply) {
    if (!(reply instanceof Map<?, ?> map)) {
      return reply;
    }
    List<Object> words = new ArrayList<>(2 * map.size());
    map.forEach((name, value) -> {
      words.add(name.toString().getBytes(StandardCharsets.UTF_8));
      words.add(value);
    });
    return words;
  }
}
