#include "repeating.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>
#include <vector>

#include "resp.h"

namespace antipode::redis {
namespace {

constexpr std::string_view kRepeated[] = {
    "BITCOUNT", "BITFIELD_RO", "BITPOS", "EXISTS", "GEODIST", "GEOHASH", "GEOPOS", "GET", "GETBIT", "GETRANGE",
    "HEXISTS", "HGET", "HGETALL", "HLEN", "HMGET", "HSTRLEN", "LCS", "LINDEX", "LLEN", "LPOS", "LRANGE", "MGET",
    "SCARD", "SDIFF", "SINTER", "SINTERCARD", "SISMEMBER", "SMEMBERS", "SMISMEMBER", "STRLEN", "SUBSTR", "SUNION",
    "TYPE", "XLEN", "XRANGE", "XREVRANGE", "ZCARD", "ZCOUNT", "ZLEXCOUNT", "ZMSCORE", "ZRANGE", "ZRANGEBYLEX",
    "ZRANGEBYSCORE", "ZRANK", "ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE", "ZREVRANK", "ZSCORE"};

// Those that answer with a set, whose order says nothing.
constexpr std::string_view kSets[] = {"SDIFF", "SINTER", "SMEMBERS", "SUNION"};

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
};

// Adds a reply's octets, each part with its kind and length; false where they are too many.
bool Add(std::string& octets, const redisReply* reply) {
  if (reply == nullptr) return false;
  octets.append(std::to_string(reply->type)).append(":");
  if (reply->type == REDIS_REPLY_ARRAY) {
    octets.append(std::to_string(reply->elements)).append(":");
    for (std::size_t place = 0; place < reply->elements; ++place) {
      if (!Add(octets, reply->element[place])) return false;
    }
  } else if (reply->type == REDIS_REPLY_INTEGER) {
    octets.append(std::to_string(reply->integer)).append(":");
  } else if (reply->str != nullptr) {
    octets.append(std::to_string(reply->len)).append(":").append(reply->str, reply->len);
  }
  return octets.size() <= ReadReply::kMostOctets;
}

// The address of a connection as the server sees it where nothing stands between; empty for one that is not of TCP.
std::string AddressOf(const redisContext& context) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(context.fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  if (own.ss_family == AF_INET) {
    const auto& at = reinterpret_cast<const sockaddr_in&>(own);
    if (inet_ntop(AF_INET, &at.sin_addr, text, sizeof text) == nullptr) return {};
    return std::string(text) + ":" + std::to_string(ntohs(at.sin_port));
  }
  if (own.ss_family == AF_INET6) {
    const auto& at = reinterpret_cast<const sockaddr_in6&>(own);
    if (inet_ntop(AF_INET6, &at.sin6_addr, text, sizeof text) == nullptr) return {};
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(at.sin6_port));
  }
  return {};
}

Reply Ask(redisContext& own, const std::vector<std::string_view>& words) {
  const std::string packed = Pack(words);
  void* raw = nullptr;
  if (redisAppendFormattedCommand(&own, packed.data(), packed.size()) != REDIS_OK) return {};
  if (redisGetReply(&own, &raw) != REDIS_OK) return {};
  return Reply(static_cast<redisReply*>(raw));
}

bool Succeeds(redisContext& own, const std::vector<std::string_view>& words) {
  const Reply reply = Ask(own, words);
  return reply && !reply.IsError();
}

std::unique_ptr<redisContext, Free> Connected(const Target& target, std::chrono::nanoseconds timeout) {
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
  timeval limit{};
  limit.tv_sec = static_cast<decltype(limit.tv_sec)>(microseconds / 1000000);
  limit.tv_usec = static_cast<decltype(limit.tv_usec)>(microseconds % 1000000);
  std::unique_ptr<redisContext, Free> own(target.path.empty()
                                              ? redisConnectWithTimeout(target.host.c_str(), target.port, limit)
                                              : redisConnectUnixWithTimeout(target.path.c_str(), limit));
  if (own == nullptr || own->err != 0 || redisSetTimeout(own.get(), limit) != REDIS_OK) return nullptr;
  if (target.password.empty()) return own;
  std::vector<std::string_view> words = {"AUTH"};
  if (!target.user.empty()) words.push_back(target.user);
  words.push_back(target.password);
  return Succeeds(*own, words) ? std::move(own) : nullptr;
}

}  // namespace

bool IsRepeated(std::string_view name) {
  return std::find(std::begin(kRepeated), std::end(kRepeated), name) != std::end(kRepeated);
}

std::optional<std::string> OctetsOf(std::string_view name, const redisReply& reply) {
  const bool is_set = std::find(std::begin(kSets), std::end(kSets), name) != std::end(kSets);
  const std::size_t step = is_set ? 1 : name == "HGETALL" ? 2 : 0;
  std::string octets;
  if (step == 0 || reply.type != REDIS_REPLY_ARRAY) {
    return Add(octets, &reply) ? std::optional(std::move(octets)) : std::nullopt;
  }
  std::vector<std::string> parts;
  std::size_t size = 0;
  for (std::size_t place = 0; place < reply.elements; ++place) {
    if (place % step == 0) parts.emplace_back();
    if (!Add(parts.back(), reply.element[place])) return std::nullopt;
    if (place % step + 1 == step) size += parts.back().size();
    if (size > ReadReply::kMostOctets) return std::nullopt;
  }
  std::sort(parts.begin(), parts.end());
  for (const std::string& part : parts) octets += part;
  return octets;
}

ReadRepeater::Known::Known(Target to, const Options& options)
    : target(std::move(to)), told(!options.url.empty()), resting(options) {}

ReadRepeater::ReadRepeater(Target target, const Options& options, const redisContext& context)
    : options_(options), known_(std::make_shared<Known>(std::move(target), options)) {
  known_->address = AddressOf(context);
}

void ReadRepeater::Reconnected(const Target& target) {
  known_ = std::make_shared<Known>(target, options_);
  known_->database = 0;
}

void ReadRepeater::Said(std::string_view name) {
  if (name == "SELECT" || name == "RESET" || name == "SWAPDB") known_->moved = true;
}

void ReadRepeater::Complete(ReadReply& told, const Words& words, std::string_view packed, const redisReply& reply,
                         std::chrono::nanoseconds timeout) const {
  if (known_->moved || !IsRepeated(CommandName(words))) return;
  told.value = [name = CommandName(words), &reply] { return OctetsOf(name, reply); };
  told.repeat = [known = known_, packed = std::string(packed), timeout] { return known->Again(packed, timeout); };
}

// The database that the application's connection reads: what was told, else what the server says of it.
std::optional<int> ReadRepeater::Known::Database(redisContext& own) {
  if (database != kUnknown) return database;
  const Reply list = Ask(own, {"CLIENT", "LIST"});
  const std::string_view text = list && !list.IsError() ? list.text() : std::string_view();
  const std::string wanted = " addr=" + address + " ";
  std::size_t begin = address.empty() ? std::string_view::npos : text.find(wanted);
  if (begin == std::string_view::npos) return told ? std::optional(target.database) : std::nullopt;
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  begin = line.find(" db=");
  int found = kUnknown;
  if (begin != std::string_view::npos) std::from_chars(line.data() + begin + 4, line.data() + line.size(), found);
  if (found < 0) return std::nullopt;
  database = found;
  return found;
}

std::optional<std::string> ReadRepeater::Known::Again(const std::string& packed, std::chrono::nanoseconds timeout) {
  const auto words = Unpack(packed);
  const auto own = moved ? nullptr : Connected(target, timeout);
  if (!own || !words) return std::nullopt;
  const std::optional<int> chosen = Database(*own);
  if (!chosen || moved) return std::nullopt;
  if (*chosen != 0 && !Succeeds(*own, {"SELECT", std::to_string(*chosen)})) return std::nullopt;
  const std::optional<std::string> wire = resting.any() ? resting.WireRead(*words) : std::nullopt;
  const auto sent = Unpack(wire ? *wire : packed);
  if (!sent) return std::nullopt;
  Reply reply = Ask(*own, *sent);
  if (!reply || reply.IsError()) return std::nullopt;
  if (resting.any()) resting.Show(resting.Answers(*words), *reply.get());
  return OctetsOf(CommandName(*words), *reply);
}

}  // namespace antipode::redis
