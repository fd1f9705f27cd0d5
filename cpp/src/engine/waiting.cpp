#include "engine/waiting.h"

#include <algorithm>
#include <map>

#include "base/in_force.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode {

bool Places::Take(WaitGroup& group) {
  const auto now = InForce();
  const std::int64_t limit = tasks_ ? now->max_tasks : now->max_waiters;
  std::map<Server*, std::int64_t> at_server;
  std::map<Store*, std::int64_t> at_store;
  for (const PendingWait& need : group.needs) {
    if (need.done.load(std::memory_order_acquire)) continue;
    std::int64_t& most = at_store[&need.server->store()];
    most = std::max(most, ++at_server[need.server.get()]);
  }
  taken_.reserve(at_store.size());  // first: what is taken is given back
  for (const auto& [store, entries] : at_store) {
    if (store->impl().TakePlace(limit, tasks_, entries)) {
      taken_.emplace_back(store, entries);
      continue;
    }
    GiveBack();
    group.overloaded = true;
    group.Refuse(Visibility::NotYet("overloaded: as many barriers wait for it as this process allows"));
    return false;
  }
  return true;
}

void Places::GiveBack() {
  for (const auto& [store, entries] : taken_) store->impl().GivePlaceBack(tasks_, entries);
  taken_.clear();
}

bool ParkAll(WaitGroup& group, const WantedWrites& wanted) {
  const TimePoint deadline = DeadlineOf(group);  // it holds meanwhile, too (BAR-60)
  for (const auto& [server, write_id] : wanted) {
    PendingWait& need = group.Add(*write_id, server);
    if (Clock::now() < deadline) server->impl().Park(need);
  }
  return group.Parked() && !group.EndOutdated();  // what left before it was parked there, nobody else sees
}

TimePoint DeadlineOf(const WaitGroup& group) {
  return group.since + (group.timeout == Duration::zero() ? kLook : group.timeout);
}

namespace {

// What is parked is given up, however its wait ends.
struct Ending {
  WaitGroup& group;
  ~Ending() { group.GiveUp(); }
};

}  // namespace

void WaitFor(WaitGroup& group, const WantedWrites& wanted) {
  const Ending ending{group};
  if (ParkAll(group, wanted)) {
    Places places(false);
    if (places.Take(group)) group.Wait(DeadlineOf(group));
  }
}

}  // namespace antipode
