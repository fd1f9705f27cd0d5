// The write flags of `COMMAND` (Redis 7.0), as a table: asking each server at run time would cost a request and a
// right.
#include "commands.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <unordered_map>

namespace antipode::redis {
namespace {

// PFCOUNT is flagged readonly though it may store a cached cardinality: no reader can tell the difference.
constexpr std::string_view kReads[] = {
    "BF.CARD", "BF.EXISTS", "BF.INFO", "BF.MEXISTS", "BITCOUNT", "BITFIELD_RO", "BITPOS", "CF.COUNT", "CF.EXISTS",
    "CF.INFO", "CF.MEXISTS", "CMS.INFO", "CMS.QUERY", "DBSIZE", "DUMP", "EVALSHA_RO", "EVAL_RO", "EXISTS",
    "EXPIRETIME", "FCALL_RO", "FT.AGGREGATE", "FT.EXPLAIN", "FT.INFO", "FT.PROFILE", "FT.SEARCH", "GEODIST",
    "GEOHASH", "GEOPOS", "GEORADIUSBYMEMBER_RO", "GEORADIUS_RO", "GEOSEARCH", "GET", "GETBIT", "GETRANGE", "HEXISTS",
    "HEXPIRETIME", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HPEXPIRETIME", "HPTTL", "HRANDFIELD", "HSCAN",
    "HSTRLEN", "HTTL", "HVALS", "JSON.ARRINDEX", "JSON.ARRLEN", "JSON.GET", "JSON.MGET", "JSON.OBJKEYS",
    "JSON.OBJLEN", "JSON.RESP", "JSON.STRLEN", "JSON.TYPE", "KEYS", "LCS", "LINDEX", "LLEN", "LPOS", "LRANGE",
    "MGET", "OBJECT", "PEXPIRETIME", "PFCOUNT", "PTTL", "RANDOMKEY", "SCAN", "SCARD", "SDIFF", "SINTER",
    "SINTERCARD", "SISMEMBER", "SMEMBERS", "SMISMEMBER", "SORT_RO", "SRANDMEMBER", "SSCAN", "STRLEN", "SUBSTR",
    "SUNION", "TOPK.LIST", "TOPK.QUERY", "TOUCH", "TS.GET", "TS.INFO", "TS.MGET", "TS.MRANGE", "TS.RANGE",
    "TS.REVRANGE", "TTL", "TYPE", "XINFO", "XLEN", "XPENDING", "XRANGE", "XREAD", "XREVRANGE", "ZCARD", "ZCOUNT",
    "ZDIFF", "ZINTER", "ZINTERCARD", "ZLEXCOUNT", "ZMSCORE", "ZRANDMEMBER", "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE",
    "ZRANK", "ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE", "ZREVRANK", "ZSCAN", "ZSCORE", "ZUNION"};

constexpr std::string_view kWrites[] = {
    "APPEND", "BITFIELD", "BITOP", "BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX",
    "BZPOPMIN", "COPY", "DECR", "DECRBY", "DEL", "EXPIRE", "EXPIREAT", "FLUSHALL", "FLUSHDB", "GEOADD",
    "GEOSEARCHSTORE", "GETDEL", "GETEX", "GETSET", "HDEL", "HINCRBY", "HINCRBYFLOAT", "HMSET", "HSET", "HSETNX",
    "INCR", "INCRBY", "INCRBYFLOAT", "LINSERT", "LMOVE", "LMPOP", "LPOP", "LPUSH", "LPUSHX", "LREM", "LSET", "LTRIM",
    "MOVE", "MSET", "MSETNX", "PERSIST", "PEXPIRE", "PEXPIREAT", "PFADD", "PFMERGE", "PSETEX", "RENAME", "RENAMENX",
    "RESTORE", "RESTORE-ASKING", "RPOP", "RPOPLPUSH", "RPUSH", "RPUSHX", "SADD", "SDIFFSTORE", "SET", "SETBIT",
    "SETEX", "SETNX", "SETRANGE", "SINTERSTORE", "SMOVE", "SPOP", "SREM", "SUNIONSTORE", "SWAPDB", "UNLINK", "XACK",
    "XADD", "XAUTOCLAIM", "XCLAIM", "XDEL", "XREADGROUP", "XSETID", "XTRIM", "ZADD", "ZDIFFSTORE", "ZINCRBY",
    "ZINTERSTORE", "ZMPOP", "ZPOPMAX", "ZPOPMIN", "ZRANGESTORE", "ZREM", "ZREMRANGEBYLEX", "ZREMRANGEBYRANK",
    "ZREMRANGEBYSCORE", "ZUNIONSTORE"};

constexpr std::string_view kOthers[] = {
    "ACL", "ASKING", "AUTH", "BGREWRITEAOF", "BGSAVE", "CLIENT", "COMMAND", "CONFIG", "ECHO", "FAILOVER",
    "HELLO", "INFO", "LASTSAVE", "LATENCY", "LOLWUT", "MODULE", "MONITOR", "PFSELFTEST", "PING",
    "PSUBSCRIBE", "PSYNC", "PUBLISH", "PUBSUB", "PUNSUBSCRIBE", "QUIT", "READONLY", "READWRITE", "REPLCONF",
    "REPLICAOF", "RESET", "ROLE", "SAVE", "SCRIPT", "SELECT", "SENTINEL", "SHUTDOWN", "SLAVEOF", "SLOWLOG",
    "SPUBLISH", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SYNC", "TIME", "UNSUBSCRIBE", "UNWATCH", "WAIT",
    "WAITAOF", "WATCH"};

// Flagged as writes, and reads unless they have one of the words STORE and STOREDIST.
constexpr std::string_view kStores[] = {"GEORADIUS", "GEORADIUSBYMEMBER", "SORT"};
constexpr std::string_view kMemoryOthers[] = {"DOCTOR", "HELP", "MALLOC-STATS", "PURGE", "STATS"};
constexpr std::string_view kClusterReads[] = {"COUNTKEYSINSLOT", "GETKEYSINSLOT"};
constexpr std::string_view kFunctionReads[] = {"DUMP", "HELP", "KILL", "LIST", "STATS"};

// Writes that answer OK, or how many they changed; SET but with GET, ZADD but with INCR.
constexpr std::string_view kBlindWrites[] = {"DEL",
                                             "EXPIRE",
                                             "EXPIREAT",
                                             "FLUSHALL",
                                             "FLUSHDB",
                                             "GEOADD",
                                             "HDEL",
                                             "HMSET",
                                             "HSET",
                                             "HSETNX",
                                             "LINSERT",
                                             "LPUSH",
                                             "LPUSHX",
                                             "LREM",
                                             "LSET",
                                             "LTRIM",
                                             "MSET",
                                             "MSETNX",
                                             "PERSIST",
                                             "PEXPIRE",
                                             "PEXPIREAT",
                                             "PFADD",
                                             "PSETEX",
                                             "RESTORE",
                                             "RESTORE-ASKING",
                                             "RPUSH",
                                             "RPUSHX",
                                             "SADD",
                                             "SET",
                                             "SETEX",
                                             "SETNX",
                                             "SREM",
                                             "SWAPDB",
                                             "UNLINK",
                                             "XACK",
                                             "XADD",
                                             "XDEL",
                                             "XSETID",
                                             "XTRIM",
                                             "ZADD",
                                             "ZREM",
                                             "ZREMRANGEBYLEX",
                                             "ZREMRANGEBYRANK",
                                             "ZREMRANGEBYSCORE",
                                             "XGROUP",
                                             "FUNCTION"};

template <std::size_t size>
bool Among(const std::string_view (&words)[size], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

using Table = std::unordered_map<std::string_view, Kind>;

Table MakeTable() {
  Table table;
  for (const std::string_view name : kReads) table.emplace(name, Kind::kRead);
  for (const std::string_view name : kWrites) table.emplace(name, Kind::kWrite);
  for (const std::string_view name : kOthers) table.emplace(name, Kind::kOther);
  for (const std::string_view name : {"MULTI", "EXEC", "DISCARD"}) table.emplace(name, Kind::kTransaction);
  return table;
}

}  // namespace

std::string Spelled(std::string_view word) {
  std::string spelled(word);
  std::transform(spelled.begin(), spelled.end(), spelled.begin(),
                 [](unsigned char octet) { return static_cast<char>(std::toupper(octet)); });
  return spelled;
}

std::string CommandName(const Words& words) { return words.empty() ? std::string() : Spelled(words.front()); }

bool Says(const Words& words, std::size_t first, std::size_t end, std::string_view word) {
  for (std::size_t place = first; place < std::min(end, words.size()); ++place) {
    if (words[place].size() == word.size() && Spelled(words[place]) == word) return true;
  }
  return false;
}

Kind Classify(const Words& words) {
  static const Table& table = *new Table(MakeTable());
  const std::string name = CommandName(words);
  if (const auto found = table.find(name); found != table.end()) return found->second;
  if (Among(kStores, name)) {
    return Says(words, 1, words.size(), "STORE") || Says(words, 1, words.size(), "STOREDIST") ? Kind::kWrite
                                                                                              : Kind::kRead;
  }
  const std::string sub = words.size() > 1 ? Spelled(words[1]) : std::string();
  if (name == "MEMORY") return Among(kMemoryOthers, sub) ? Kind::kOther : Kind::kRead;
  if (name == "CLUSTER") return Among(kClusterReads, sub) ? Kind::kRead : Kind::kOther;
  if (name == "FUNCTION") return Among(kFunctionReads, sub) ? Kind::kOther : Kind::kWrite;
  if (name == "XGROUP") return sub == "HELP" ? Kind::kOther : Kind::kWrite;
  return Kind::kMaybe;
}

bool MayRead(const Words& words, Kind kind) {
  if (kind == Kind::kRead || kind == Kind::kMaybe) return true;
  if (kind != Kind::kWrite) return false;
  const std::string name = CommandName(words);
  if (!Among(kBlindWrites, name)) return true;
  return (name == "SET" && Says(words, 3, words.size(), "GET")) ||
         (name == "ZADD" && Says(words, 2, words.size(), "INCR"));
}

bool Blocks(const Words& words) { return CommandName(words) == "XREAD" && Says(words, 1, 4, "BLOCK"); }

bool TakesTheLine(const Words& words) {
  static constexpr std::string_view kTakers[] = {"MONITOR", "PSUBSCRIBE", "PSYNC", "SSUBSCRIBE", "SUBSCRIBE", "SYNC"};
  return Among(kTakers, CommandName(words));
}

}  // namespace antipode::redis
