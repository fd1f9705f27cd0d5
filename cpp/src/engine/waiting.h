/// \file
/// Waiting for writes at servers: places, deadlines, giving up (spec BAR-28, BAR-32, BAR-39).
#ifndef ANTIPODE_ENGINE_WAITING_H_
#define ANTIPODE_ENGINE_WAITING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "antipode/lineage.h"
#include "antipode/store.h"
#include "engine/need.h"

namespace antipode {

/// How long a look without waiting (a timeout of 0) may take to ask the servers.
inline constexpr Duration kLook = std::chrono::milliseconds(100);

/// Every write, at every server where it has to be seen.
using WantedWrites = std::vector<std::pair<std::shared_ptr<Server>, const WriteId*>>;

/// The places that a barrier took, counted a store and process; they are given back at its end.
class Places {
 public:
  explicit Places(bool tasks) noexcept : tasks_(tasks) {}
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  ~Places() { GiveBack(); }

  /// One of each store that is still waited for; false where all of one are taken: then the group is overloaded.
  bool Take(WaitGroup& group);
  void GiveBack();

 private:
  const bool tasks_;
  std::vector<std::pair<Store*, std::int64_t>> taken_;  // and how many entries
};

/// Parks every write at its server; true where something is to be waited for.
bool ParkAll(WaitGroup& group, const WantedWrites& wanted);

/// When the group is to be given up; a look without waiting still asks each server once.
TimePoint DeadlineOf(const WaitGroup& group);

/// Blocks until every write is settled at its server, or the group's timeout has passed.
void WaitFor(WaitGroup& group, const WantedWrites& wanted);

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_WAITING_H_
