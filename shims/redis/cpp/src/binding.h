// What one wrapped connection knows of its store, and how its writes and reads are treated.
#ifndef ANTIPODE_REDIS_BINDING_H_
#define ANTIPODE_REDIS_BINDING_H_

#include <hiredis/hiredis.h>

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "antipode/redis.h"
#include "antipode/shim/lead.h"
#include "antipode/shim/server.h"
#include "antipode/store.h"
#include "marker.h"
#include "resting.h"
#include "shim.h"
#include "target.h"

namespace antipode::redis {

struct Binding {
  Binding(const redisContext& context, std::shared_ptr<Store> joined, std::shared_ptr<Lead> own, Target reached,
          const Options& given);
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;
  ~Binding();

  const std::string& name() const { return store->name(); }
  bool waits() const { return options.wait_on_read.value_or(false); }
  RedisShim& shim() const { return static_cast<RedisShim&>(store->shim()); }
  // Where the connection leads may have been changed since the wrap: the server that it leads to now joins (BAR-52),
  // and the one before leaves, unless others lead there (BAR-62).
  void Reach(const redisContext& context);
  // How long a read of this connection waits.
  std::chrono::nanoseconds Timeout() const;
  // Why positions of this server prove nothing; empty where they do.
  std::string Unfit() const;

  // Whether the question may ride behind a write: it was not refused lately.
  bool MayAsk() const;
  // The server refused to say where it is.
  void Denied(const std::string& words);

  const std::shared_ptr<Store> store;
  std::shared_ptr<Server> server;
  Target target;
  const Options options;
  const LineagePlacement resting;
  std::shared_ptr<Marker> marker;
  std::string why_denied;

 private:
  Target place_;  // where the connection leads, by its words or by its peer
  ino_t socket_;
  std::shared_ptr<Lead> lead_;
  std::chrono::steady_clock::time_point denied_until_{};
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_BINDING_H_
