// Posts in Redis: a string a post.
#include <memory>
#include <utility>

#include "posts.h"
#include "redis_client.h"

namespace services {
namespace {

using PlainReply = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;

class PlainPosts : public PostsConnection {
 public:
  explicit PlainPosts(RedisContext context) : context_(std::move(context)) {}

  void Write(const std::string& key, const std::string& body) override {
    Ask("SET %b %b", key.data(), key.size(), body.data(), body.size());
  }
  std::optional<std::string> Read(const std::string& key) override { return Ask("GET %b", key.data(), key.size()); }

 private:
  template <class... Arguments>
  std::optional<std::string> Ask(const char* format, Arguments... arguments) {
    const PlainReply reply(static_cast<redisReply*>(redisCommand(context_.get(), format, arguments...)),
                           freeReplyObject);
    return ValueOf(reply.get(), context_->errstr);
  }

  const RedisContext context_;
};

class WrappedPosts : public PostsConnection {
 public:
  WrappedPosts(const std::string& url, const antipode::StoreOptions& options) : redis_(url, options) {}

  void Write(const std::string& key, const std::string& body) override { redis_.Set(key, body); }
  std::optional<std::string> Read(const std::string& key) override { return redis_.Get(key); }

 private:
  WrappedRedis redis_;
};

}  // namespace

std::unique_ptr<PostsConnection> ConnectRedis(const Setup& setup, const std::string& url) {
  if (!setup.antipode) return std::make_unique<PlainPosts>(ConnectHiredis(url));
  return std::make_unique<WrappedPosts>(
      url, antipode::StoreOptions(kPosts).WaitOnRead(setup.wait_on_read()).Timeout(setup.timeout));
}

void RegisterRedis(const antipode::StoreOptions& options) {
  if (const auto done = antipode::redis::Register(options); !done) throw Failure(done.error().message);
}

}  // namespace services
