// Redis by hiredis: connections, and what its replies hold.
#ifndef ANTIPODE_EXAMPLES_SERVICES_REDIS_CLIENT_H_
#define ANTIPODE_EXAMPLES_SERVICES_REDIS_CLIENT_H_

#include <antipode/redis.h>

#include <memory>
#include <optional>
#include <string>

namespace services {

using RedisContext = std::unique_ptr<redisContext, decltype(&redisFree)>;

// A connection to redis://HOST:PORT; throws where there is none.
RedisContext ConnectHiredis(const std::string& url);

// The octets of a reply; nothing for nil. Throws for an error, and where the connection gave none.
std::optional<std::string> ValueOf(const redisReply* reply, const char* words);

// A wrapped connection, for one thread at a time. What fails throws; the connection is of no use then.
class WrappedRedis {
 public:
  // `pipelined`: commands are appended, and their replies fetched.
  WrappedRedis(const std::string& url, const antipode::StoreOptions& options, bool pipelined = false);

  void Set(const std::string& key, const std::string& value);
  std::optional<std::string> Get(const std::string& key);

 private:
  template <class... Arguments>
  antipode::redis::Reply Ask(const char* format, Arguments... arguments);
  std::optional<std::string> Checked(const antipode::redis::Reply& reply);

  const bool pipelined_;
  antipode::redis::Connection connection_;
};

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_REDIS_CLIENT_H_
