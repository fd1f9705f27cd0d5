// Posts in Redis: a string a post.
#include <antipode/redis.h>

#include <memory>
#include <regex>
#include <utility>

#include "posts.h"

namespace services {
namespace {

constexpr int kTimeoutS = 30;

using Context = std::unique_ptr<redisContext, decltype(&redisFree)>;
using PlainReply = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;

Context Connect(const std::string& url) {
  std::smatch parts;
  if (!std::regex_match(url, parts, std::regex("redis://([^:@/]+):([0-9]+)(/0?)?"))) {
    throw Failure("a Redis without credentials is all that these services can reach");
  }
  Context context(redisConnect(parts[1].str().c_str(), std::stoi(parts[2])), redisFree);
  if (context == nullptr || context->err != 0) {
    throw Failure(std::string("Redis: ") + (context == nullptr ? "no memory" : context->errstr));
  }
  redisSetTimeout(context.get(), {kTimeoutS, 0});
  return context;
}

// The octets of a reply; nothing for nil. Throws for an error, and where the connection gave none.
std::optional<std::string> Value(const redisReply* reply, const char* words) {
  if (reply == nullptr) throw Failure(std::string("Redis: ") + words);
  if (reply->type == REDIS_REPLY_NIL) return std::nullopt;
  std::string text(reply->str, reply->len);
  if (reply->type == REDIS_REPLY_ERROR) throw Failure("Redis: " + text);
  return text;
}

class PlainRedis : public PostsConnection {
 public:
  explicit PlainRedis(Context context) : context_(std::move(context)) {}

  void Write(const std::string& key, const std::string& body) override {
    Ask("SET %b %b", key.data(), key.size(), body.data(), body.size());
  }
  std::optional<std::string> Read(const std::string& key) override { return Ask("GET %b", key.data(), key.size()); }

 private:
  template <class... Arguments>
  std::optional<std::string> Ask(const char* format, Arguments... arguments) {
    const PlainReply reply(static_cast<redisReply*>(redisCommand(context_.get(), format, arguments...)), freeReplyObject);
    return Value(reply.get(), context_->errstr);
  }

  const Context context_;
};

class WrappedRedis : public PostsConnection {
 public:
  explicit WrappedRedis(antipode::redis::Connection connection) : connection_(std::move(connection)) {}

  void Write(const std::string& key, const std::string& body) override {
    Checked(connection_.Command("SET %b %b", key.data(), key.size(), body.data(), body.size()));
  }
  std::optional<std::string> Read(const std::string& key) override {
    return Checked(connection_.Command("GET %b", key.data(), key.size()));
  }

 private:
  std::optional<std::string> Checked(const antipode::redis::Reply& reply) {
    if (reply.error() != nullptr) throw Failure(reply.error()->message);  // the read waited in vain
    return Value(reply.get(), connection_.errstr());
  }

  antipode::redis::Connection connection_;
};

}  // namespace

std::unique_ptr<PostsConnection> ConnectRedis(const Setup& setup, const std::string& url) {
  Context context = Connect(url);
  if (!setup.antipode) return std::make_unique<PlainRedis>(std::move(context));
  auto wrapped = antipode::redis::Wrap(
      context.release(), antipode::StoreOptions(kPosts).WaitOnRead(setup.wait_on_read()).Timeout(setup.timeout));
  if (!wrapped) throw Failure(wrapped.error().message);
  return std::make_unique<WrappedRedis>(*std::move(wrapped));
}

void RegisterRedis(const antipode::StoreOptions& options) {
  if (const auto done = antipode::redis::Register(options); !done) throw Failure(done.error().message);
}

}  // namespace services
