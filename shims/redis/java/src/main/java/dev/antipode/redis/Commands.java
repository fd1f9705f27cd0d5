package dev.antipode.redis;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * What a Redis command may do to data: the write flags of {@code COMMAND} (Redis 7.0), as a table, the same in every
 * language. Asking each server at run time would cost a request and a right. Commands that are not in the table (newer
 * ones, modules) may write.
 */
final class Commands {
  /** What a command may do. */
  enum Kind {
    /** Neither reads nor writes data: it is passed on untouched. */
    OTHER,
    /** Reads data and changes nothing. */
    READ,
    /** Flagged as a write: an error reply says that nothing was changed. */
    WRITE,
    /** A script, a module's or an unknown command: may write, also where it ends with an error, and may read. */
    MAYBE;

    /** Return whether it may change data (SHIM-43). */
    boolean mayWrite() {
      return this == WRITE || this == MAYBE;
    }
  }

  private static final String READS = """
      BITCOUNT BITFIELD_RO BITPOS DBSIZE DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST GEOHASH
      GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN
      HMGET HRANDFIELD HSCAN HSTRLEN HVALS KEYS LCS LINDEX LLEN LPOS LRANGE MGET OBJECT PEXPIRETIME PFCOUNT
      PTTL RANDOMKEY SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN
      STRLEN SUBSTR SUNION TOUCH TTL TYPE XINFO XLEN XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER
      ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX
      ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION HTTL HPTTL HEXPIRETIME HPEXPIRETIME JSON.GET JSON.MGET
      JSON.TYPE JSON.STRLEN JSON.ARRLEN JSON.ARRINDEX JSON.OBJKEYS JSON.OBJLEN JSON.RESP FT.SEARCH FT.AGGREGATE
      FT.INFO FT.EXPLAIN FT.PROFILE TS.GET TS.MGET TS.RANGE TS.REVRANGE TS.MRANGE TS.INFO BF.EXISTS BF.MEXISTS
      BF.INFO BF.CARD CF.EXISTS CF.MEXISTS CF.COUNT CF.INFO CMS.QUERY CMS.INFO TOPK.QUERY TOPK.LIST
      """;

  private static final String WRITES = """
      APPEND BITFIELD BITOP BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN COPY DECR DECRBY DEL
      EXPIRE EXPIREAT FLUSHALL FLUSHDB GEOADD GEOSEARCHSTORE GETDEL GETEX GETSET HDEL HINCRBY HINCRBYFLOAT
      HMSET HSET HSETNX INCR INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX LREM LSET LTRIM MOVE MSET
      MSETNX PERSIST PEXPIRE PEXPIREAT PFADD PFMERGE PSETEX RENAME RENAMENX RESTORE RESTORE-ASKING RPOP
      RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTERSTORE SMOVE SPOP SREM
      SUNIONSTORE SWAPDB UNLINK XACK XADD XAUTOCLAIM XCLAIM XDEL XREADGROUP XSETID XTRIM ZADD ZDIFFSTORE
      ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK
      ZREMRANGEBYSCORE ZUNIONSTORE
      """;

  private static final String OTHERS = """
      ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT COMMAND CONFIG ECHO FAILOVER HELLO INFO LASTSAVE
      LATENCY LOLWUT MODULE MONITOR PFSELFTEST PING PSUBSCRIBE PSYNC PUBLISH PUBSUB PUNSUBSCRIBE QUIT
      READONLY READWRITE REPLCONF REPLICAOF RESET ROLE SAVE SCRIPT SELECT SENTINEL SHUTDOWN SLAVEOF SLOWLOG
      SPUBLISH SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC TIME UNSUBSCRIBE UNWATCH WAIT WAITAOF WATCH MULTI EXEC
      DISCARD
      """;

  /** Writes whose reply holds data. */
  private static final Set<String> ANSWERING = Set.of(
      ("BITFIELD BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN DECR DECRBY GETDEL GETEX GETSET HINCRBY "
          + "HINCRBYFLOAT INCR INCRBY INCRBYFLOAT LMOVE LMPOP LPOP RPOP RPOPLPUSH SETBIT SPOP XAUTOCLAIM XCLAIM XREADGROUP "
          + "ZINCRBY ZMPOP ZPOPMAX ZPOPMIN").split(" "));

  // Flagged as writes, and reads unless they say where to store.
  private static final Set<String> STORING = Set.of("SORT", "GEORADIUS", "GEORADIUSBYMEMBER");
  private static final Set<String> FUNCTION_READS = Set.of("DUMP", "LIST");
  private static final Set<String> FUNCTION_OTHERS = Set.of("HELP", "KILL", "STATS");
  private static final Set<String> MEMORY_OTHERS = Set.of("DOCTOR", "HELP", "MALLOC-STATS", "PURGE", "STATS");
  private static final Set<String> CLUSTER_READS = Set.of("COUNTKEYSINSLOT", "GETKEYSINSLOT");
  private static final Map<String, Kind> KINDS = new HashMap<>();

  static {
    // PFCOUNT is flagged readonly though it may store a cached cardinality: no reader can tell the difference.
    put(READS, Kind.READ);
    put(WRITES, Kind.WRITE);
    put(OTHERS, Kind.OTHER);
  }

  private Commands() {}

  private static void put(String names, Kind kind) {
    for (String name : names.strip().split("\\s+")) {
      KINDS.put(name, kind);
    }
  }

  /** What a command may do. */
  static Kind classify(CommandWords command) {
    String name = name(command);
    Kind kind = KINDS.get(name);
    if (kind != null) {
      return kind;
    }
    if (STORING.contains(name)) {
      return has(command, "STORE") || has(command, "STOREDIST") ? Kind.WRITE : Kind.READ;
    }
    String sub = command.size() > 1 ? word(command, 1) : "";
    if (name.equals("MEMORY")) {
      return MEMORY_OTHERS.contains(sub) ? Kind.OTHER : Kind.READ;
    }
    if (name.equals("CLUSTER")) {
      return CLUSTER_READS.contains(sub) ? Kind.READ : Kind.OTHER;
    }
    if (name.equals("XGROUP")) {
      return sub.equals("HELP") ? Kind.OTHER : Kind.WRITE;
    }
    if (name.equals("FUNCTION")) {
      if (FUNCTION_READS.contains(sub)) {
        return Kind.READ;
      }
      return FUNCTION_OTHERS.contains(sub) ? Kind.OTHER : Kind.WRITE;
    }
    return Kind.MAYBE;
  }

  /** Return whether a command of this kind may return what others wrote, so that it waits; what is unsure does (SHIM-44). */
  static boolean mayRead(Kind kind, CommandWords command) {
    if (kind != Kind.WRITE) {
      return kind == Kind.READ || kind == Kind.MAYBE;
    }
    String name = name(command);
    return ANSWERING.contains(name) || (name.equals("SET") && command.size() > 3 && has(command, "GET"));
  }

  /** The command's first word in capitals. */
  static String name(CommandWords command) {
    String whole = word(command, 0);
    int space = whole.indexOf(' ');
    return space < 0 ? whole : whole.substring(0, space);
  }

  /** A word of a command in capitals. */
  static String word(CommandWords command, int place) {
    return new String(command.get(place), StandardCharsets.ISO_8859_1).toUpperCase(Locale.ROOT);
  }

  /** Whether a read may block at the server ({@code XREAD … BLOCK}). */
  static boolean blocks(CommandWords command) {
    return name(command).equals("XREAD") && has(command, "BLOCK");
  }

  private static boolean has(CommandWords command, String wanted) {
    for (int place = 1; place < command.size(); place++) {
      if (word(command, place).equals(wanted)) {
        return true;
      }
    }
    return false;
  }
}
