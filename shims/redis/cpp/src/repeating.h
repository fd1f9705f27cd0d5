// Reads in dry-run, sent once more on a connection of our own (spec REC-14).
#ifndef ANTIPODE_REDIS_REPEATING_H_
#define ANTIPODE_REDIS_REPEATING_H_

#include <hiredis/hiredis.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "antipode/redis.h"
#include "antipode/shim/read_observer.h"
#include "commands.h"
#include "resting.h"
#include "target.h"

namespace antipode::redis {

// Whether a command is a read without side effects that says the same of the same data: no random one, none of times,
// none whose order is that of a table, and no script.
bool IsRepeated(std::string_view name);

// A reply as octets, the same for equal replies of the command of this name; nothing where it is too long.
std::optional<std::string> OctetsOf(std::string_view name, const redisReply& reply);

// The reads of one wrapped connection.
class ReadRepeater {
 public:
  ReadRepeater(Target target, const Options& options, const redisContext& context);

  // The connection is made anew: its database is the first again.
  void Reconnected(const Target& target);
  // The application says something on it that is neither read nor write.
  void Said(std::string_view name);
  // Says how a read is sent once more, and what its application gets to compare that with, where it may be.
  void Complete(ReadReply& told, const Words& words, std::string_view packed, const redisReply& reply,
                std::chrono::nanoseconds timeout) const;

 private:
  static constexpr int kUnknown = -1;

  // What a repeat needs, when the connection may be gone.
  struct Known {
    Known(Target to, const Options& options);
    std::optional<std::string> Again(const std::string& packed, std::chrono::nanoseconds timeout);
    std::optional<int> Database(redisContext& own);

    const Target target;
    const bool told;  // the application has named the server with its database
    const LineagePlacement resting;
    std::string address;  // of the connection, as the server sees it
    std::atomic<int> database{kUnknown};
    std::atomic<bool> moved{false};  // the application may have chosen another database since
  };

  const Options options_;
  std::shared_ptr<Known> known_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_REPEATING_H_
