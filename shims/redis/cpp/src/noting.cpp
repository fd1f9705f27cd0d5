#include "noting.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace antipode::redis {
namespace {

using Changes = std::vector<history::Changed>;

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

history::Changed To(const std::string& store, const std::string& key, std::string_view value, bool expires = false) {
  return {key, history::ValueDigest(store, key, value), expires};
}

history::Seen Found(const std::string& store, std::string_view key, const redisReply* value) {
  history::Seen seen{std::string(key)};
  if (value != nullptr && value->type == REDIS_REPLY_NIL) seen.value = history::kGone;
  if (value != nullptr && value->type == REDIS_REPLY_STRING) {
    seen.value = history::ValueDigest(store, key, std::string_view(value->str, value->len));
  }
  return seen;
}

// What a read found under which keys.
std::vector<history::Seen> SeenIn(const std::string& store, const Words& words, const redisReply& reply,
                                  bool is_queued) {
  std::vector<history::Seen> seen;
  const std::string name = CommandName(words);
  const bool has_key = words.size() > 1 && !Among(kWithoutKey, name);
  if (name == "GET" && has_key) {
    seen.push_back(Found(store, words[1], is_queued ? nullptr : &reply));
  } else if (name == "MGET") {
    const bool is_whole = !is_queued && reply.type == REDIS_REPLY_ARRAY && reply.elements + 1 == words.size();
    for (std::size_t place = 1; place < words.size(); ++place) {
      seen.push_back(Found(store, words[place], is_whole ? reply.element[place - 1] : nullptr));
    }
  } else if (name == "EXISTS" && !is_queued && reply.type == REDIS_REPLY_INTEGER && reply.integer == 0) {
    for (std::size_t place = 1; place < words.size(); ++place) {
      seen.push_back({std::string(words[place]), std::string(history::kGone)});
    }
  } else {
    seen.push_back({has_key ? std::string(words[1]) : std::string()});
  }
  return seen;
}

}  // namespace

std::size_t NotedCommands::Add(const Words& words, Kind kind) {
  commands_.push_back({{words.begin(), words.end()}, kind});
  return commands_.size() - 1;
}

void NotedCommands::Heard(std::size_t place, const redisReply& reply) {
  using Reply = Command::Reply;
  Command& command = commands_[place];
  switch (reply.type) {
    case REDIS_REPLY_NIL:
      command.reply = Reply::kNil;
      break;
    case REDIS_REPLY_INTEGER:
      command.reply = Reply::kInteger;
      command.integer = reply.integer;
      break;
    case REDIS_REPLY_ERROR:
      command.reply = Reply::kError;
      break;
    default:
      command.reply = Reply::kOther;
  }
}

std::optional<Changes> NotedCommands::Changed(const std::string& store) const {
  Changes all;
  for (const Command& command : commands_) {
    std::optional<Changes> own = Changed(store, command);
    if (!own) return std::nullopt;
    std::move(own->begin(), own->end(), std::back_inserter(all));
  }
  return all;
}

// Which keys one command changed, if it was done; without a reply, what it does where none says more.
std::optional<Changes> NotedCommands::Changed(const std::string& store, const Command& command) {
  const std::vector<std::string>& words = command.words;
  const std::string name = CommandName({words.begin(), words.end()});
  if (command.kind != Kind::kWrite) return std::nullopt;
  if (command.reply == Command::Reply::kError) return Changes();  // of what is flagged as a write: nothing was changed
  const bool is_nil = command.reply == Command::Reply::kNil;
  const std::size_t count = words.size();
  if (name == "SET" && count > 2) return Set(store, command);
  if ((name == "SETEX" || name == "PSETEX") && count > 3) return Changes{To(store, words[1], words[3], true)};
  if (name == "SETNX" && count > 2) return command.Says(0) ? Changes() : Changes{To(store, words[1], words[2])};
  if (name == "GETSET" && count > 2) return Changes{To(store, words[1], words[2])};
  if (name == "MSET" || name == "MSETNX") {
    Changes changed;
    if (name == "MSETNX" && command.Says(0)) return changed;
    for (std::size_t place = 1; place + 1 < count; place += 2) {
      changed.push_back(To(store, words[place], words[place + 1]));
    }
    return changed;
  }
  const bool deletes = name == "DEL" || name == "UNLINK";
  if (deletes || (name == "GETDEL" && count > 1)) {
    Changes changed;
    if (deletes ? command.Says(0) : is_nil) return changed;
    for (std::size_t place = 1; place < count; ++place) changed.push_back({words[place], std::string(history::kGone)});
    return changed;
  }
  if (name == "PERSIST") return Changes();
  if (Among(kCounters, name) && count > 1) {
    const bool is_known = command.reply == Command::Reply::kInteger;
    return Changes{is_known ? To(store, words[1], std::to_string(command.integer)) : history::Changed{words[1]}};
  }
  if (Among(kOneKey, name) && count > 1) return Changes{history::Changed{words[1]}};
  return std::nullopt;
}

Changes NotedCommands::Set(const std::string& store, const Command& command) {
  const std::vector<std::string>& words = command.words;
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
  if (others || (gets && conditional)) {
    return {history::Changed{words[1]}};  // its reply does not say whether it was done
  }
  if (conditional && command.reply == Command::Reply::kNil) return {};
  return {To(store, words[1], words[2], expires)};
}

std::shared_ptr<NotedReads> NotedReads::For(const Store& store) {
  ScopePtr scope = CurrentScope();
  auto noted = history::NoteRead(store, scope);
  if (noted == nullptr) return nullptr;
  return std::shared_ptr<NotedReads>(new NotedReads(store.name(), std::move(scope), std::move(noted)));
}

NotedReads::NotedReads(std::string store, ScopePtr scope, std::unique_ptr<history::NotedRead> noted)
    : store_(std::move(store)), scope_(std::move(scope)), noted_(std::move(noted)) {}

NotedReads::~NotedReads() { noted_->Over(seen_, covers_); }

void NotedReads::Came(const Words& words, const redisReply& reply, bool is_queued) {
  if (reply.type == REDIS_REPLY_ERROR) return;
  std::vector<history::Seen> own = SeenIn(store_, words, reply, is_queued);
  std::move(own.begin(), own.end(), std::back_inserter(seen_));
}

}  // namespace antipode::redis
