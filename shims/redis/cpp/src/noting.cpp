#include "noting.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace antipode::redis {
namespace {

using Changes = std::vector<history::KeyChange>;

// Writes that change their first key, and no other.
constexpr std::string_view kOneKey[] = {"APPEND",
                                        "BITFIELD",
                                        "EXPIRE",
                                        "EXPIREAT",
                                        "GEOADD",
                                        "GETEX",
                                        "HDEL",
                                        "HINCRBY",
                                        "HINCRBYFLOAT",
                                        "HMSET",
                                        "HSET",
                                        "HSETNX",
                                        "INCRBYFLOAT",
                                        "LINSERT",
                                        "LPOP",
                                        "LPUSH",
                                        "LPUSHX",
                                        "LREM",
                                        "LSET",
                                        "LTRIM",
                                        "PEXPIRE",
                                        "PEXPIREAT",
                                        "PFADD",
                                        "RPOP",
                                        "RPUSH",
                                        "RPUSHX",
                                        "SADD",
                                        "SDIFFSTORE",
                                        "SETBIT",
                                        "SETRANGE",
                                        "SINTERSTORE",
                                        "SPOP",
                                        "SREM",
                                        "SUNIONSTORE",
                                        "XACK",
                                        "XADD",
                                        "XDEL",
                                        "XSETID",
                                        "XTRIM",
                                        "ZADD",
                                        "ZDIFFSTORE",
                                        "ZINCRBY",
                                        "ZINTERSTORE",
                                        "ZPOPMAX",
                                        "ZPOPMIN",
                                        "ZREM",
                                        "ZREMRANGEBYLEX",
                                        "ZREMRANGEBYRANK",
                                        "ZREMRANGEBYSCORE",
                                        "ZUNIONSTORE"};
constexpr std::string_view kCounters[] = {"INCR", "INCRBY", "DECR", "DECRBY"};
// Words of SET that let a value go by itself; all but the last have a number behind them.
constexpr std::string_view kExpiring[] = {"EX", "PX", "EXAT", "PXAT", "KEEPTTL"};
constexpr std::string_view kWithoutKey[] = {"DBSIZE", "KEYS", "RANDOMKEY", "SCAN"};

template <std::size_t size>
bool Among(const std::string_view (&words)[size], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

history::KeyChange There(std::string_view key, bool expires = false) {
  return {std::string(key), history::Content::kSomething, expires};
}

ReadValue SeenAt(std::string_view key, bool is_nothing) {
  return {std::string(key), is_nothing ? history::Content::kNothing : history::Content::kUnknown};
}

// What SET does; its reply is nil where it is conditional and did nothing.
NotedCommand Set(const Words& words) {
  bool conditional = false;
  bool gets = false;
  bool expires = false;
  bool others = false;
  for (std::size_t place = 3; place < words.size(); ++place) {
    const std::string word = Spelled(words[place]);
    if (word == "NX" || word == "XX") {
      conditional = true;
    } else if (word == "GET") {
      gets = true;
    } else if (Among(kExpiring, word)) {
      expires = true;
      if (word != "KEEPTTL") ++place;
    } else {
      others = true;
    }
  }
  // Without that, its reply does not say whether it was done.
  if (others || (gets && conditional)) return {Changes{{std::string(words[1])}}};
  return {Changes{There(words[1], expires)}, conditional ? REDIS_REPLY_NIL : REDIS_REPLY_ERROR};
}

// What a command that is flagged as a write does if it is done.
NotedCommand Of(const Words& words) {
  const std::string name = CommandName(words);
  const std::size_t count = words.size();
  if (name == "SET" && count > 2) return Set(words);
  if ((name == "SETEX" || name == "PSETEX") && count > 3) return {Changes{There(words[1], true)}};
  if (name == "SETNX" && count > 2) return {Changes{There(words[1])}, REDIS_REPLY_INTEGER};
  if (name == "GETSET" && count > 2) return {Changes{There(words[1])}};
  if (name == "MSET" || name == "MSETNX") {
    Changes changed;
    for (std::size_t place = 1; place + 1 < count; place += 2) changed.push_back(There(words[place]));
    return {changed, name == "MSETNX" ? REDIS_REPLY_INTEGER : REDIS_REPLY_ERROR};
  }
  const bool deletes = name == "DEL" || name == "UNLINK";
  if (deletes || (name == "GETDEL" && count > 1)) {
    Changes changed;
    for (std::size_t place = 1; place < count; ++place) {
      changed.push_back({std::string(words[place]), history::Content::kNothing});
    }
    return {changed, deletes ? REDIS_REPLY_INTEGER : REDIS_REPLY_NIL};
  }
  if (name == "PERSIST") return {Changes()};
  if (Among(kCounters, name) && count > 1) return {Changes{There(words[1])}};
  if (Among(kOneKey, name) && count > 1) return {Changes{{std::string(words[1])}}};
  return {};
}

}  // namespace

std::size_t NotedCommands::Add(const Words& words, Kind kind) {
  const bool is_write = kind == Kind::kWrite;
  commands_.push_back(is_write ? Of(words) : NotedCommand{});
  commands_.back().is_write = is_write;
  return commands_.size() - 1;
}

void NotedCommands::Heard(std::size_t place, const redisReply& reply) {
  NotedCommand& command = commands_[place];
  const bool is_nothing = reply.type == command.nothing && (reply.type != REDIS_REPLY_INTEGER || reply.integer == 0);
  // Of what is flagged as a write an error says that nothing was changed.
  if (command.is_write && (is_nothing || reply.type == REDIS_REPLY_ERROR)) command.changes.emplace();
}

std::optional<Changes> NotedCommands::Changed() const {
  Changes all;
  for (const NotedCommand& command : commands_) {
    if (!command.changes) return std::nullopt;
    all.insert(all.end(), command.changes->begin(), command.changes->end());
  }
  return all;
}

std::vector<ReadValue> ValuesIn(const Words& words, const redisReply& reply, bool is_queued) {
  std::vector<ReadValue> seen;
  if (reply.type == REDIS_REPLY_ERROR) return seen;
  const std::string name = CommandName(words);
  const bool has_key = words.size() > 1 && !Among(kWithoutKey, name);
  const bool are_none = name == "EXISTS" && !is_queued && reply.type == REDIS_REPLY_INTEGER && reply.integer == 0;
  if (name == "GET" && has_key) {
    seen.push_back(SeenAt(words[1], !is_queued && reply.type == REDIS_REPLY_NIL));
  } else if (name == "MGET" || are_none) {
    const bool is_whole = !is_queued && reply.type == REDIS_REPLY_ARRAY && reply.elements + 1 == words.size();
    for (std::size_t place = 1; place < words.size(); ++place) {
      const bool is_nil = is_whole && reply.element[place - 1]->type == REDIS_REPLY_NIL;
      seen.push_back(SeenAt(words[place], are_none || is_nil));
    }
  } else {
    seen.push_back(SeenAt(has_key ? words[1] : std::string_view(), false));
  }
  return seen;
}

}  // namespace antipode::redis
