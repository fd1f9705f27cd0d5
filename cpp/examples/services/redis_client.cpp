#include "redis_client.h"

#include <regex>
#include <utility>

#include "setup.h"

namespace services {
namespace {

constexpr int kTimeoutS = 30;

antipode::redis::Connection Wrapped(const std::string& url, const antipode::StoreOptions& options) {
  auto wrapped = antipode::redis::Wrap(ConnectHiredis(url).release(), options);
  if (!wrapped) throw Failure(wrapped.error().message);
  return *std::move(wrapped);
}

}  // namespace

RedisContext ConnectHiredis(const std::string& url) {
  std::smatch parts;
  if (!std::regex_match(url, parts, std::regex("redis://([^:@/]+):([0-9]+)(/0?)?"))) {
    throw Failure("a Redis without credentials is all that these services can reach");
  }
  RedisContext context(redisConnect(parts[1].str().c_str(), std::stoi(parts[2])), redisFree);
  if (context == nullptr || context->err != 0) {
    throw Failure(std::string("Redis: ") + (context == nullptr ? "no memory" : context->errstr));
  }
  redisSetTimeout(context.get(), {kTimeoutS, 0});
  return context;
}

std::optional<std::string> ValueOf(const redisReply* reply, const char* words) {
  if (reply == nullptr) throw Failure(std::string("Redis: ") + words);
  if (reply->type == REDIS_REPLY_NIL) return std::nullopt;
  std::string text(reply->str, reply->len);
  if (reply->type == REDIS_REPLY_ERROR) throw Failure("Redis: " + text);
  return text;
}

WrappedRedis::WrappedRedis(const std::string& url, const antipode::StoreOptions& options, bool pipelined)
    : pipelined_(pipelined), connection_(Wrapped(url, options)) {}

template <class... Arguments>
antipode::redis::Reply WrappedRedis::Ask(const char* format, Arguments... arguments) {
  if (!pipelined_) return connection_.Command(format, arguments...);
  antipode::redis::Reply reply;
  if (connection_.Append(format, arguments...) != REDIS_OK || connection_.GetReply(&reply) != REDIS_OK) {
    throw Failure(connection_.refused() != nullptr ? connection_.refused()->message : connection_.errstr());
  }
  return reply;
}

void WrappedRedis::Set(const std::string& key, const std::string& value) {
  Checked(Ask("SET %b %b", key.data(), key.size(), value.data(), value.size()));
}

std::optional<std::string> WrappedRedis::Get(const std::string& key) {
  return Checked(Ask("GET %b", key.data(), key.size()));
}

std::optional<std::string> WrappedRedis::Checked(const antipode::redis::Reply& reply) {
  if (reply.error() != nullptr) throw Failure(reply.error()->message);  // the read waited in vain
  return ValueOf(reply.get(), connection_.errstr());
}

}  // namespace services
