#include "engine/barrier_waits.h"

#include <algorithm>
#include <utility>

#include "engine/waiting.h"

namespace antipode {
namespace {

constexpr char kChanged[] = "the store's servers changed until the deadline, and this one was not asked any more";

// Whether the barrier does not pass for this need, whoever else joins.
bool Fails(const PendingWait& need) { return !need.Is(Verdict::kVisible) && !need.left_out; }

}  // namespace

std::shared_ptr<WaitGroup> BarrierWaits::Begin(std::function<void()> released) {
  const TimePoint since = group_ ? group_->since : Clock::now();
  group_ = std::make_shared<WaitGroup>(plan_->timeout, std::move(released), since);
  group_->looks_twice = plan_->LooksTwice();
  group_->has_changed = plan_->Outdated();
  group_->is_own = plan_->reach == Reach::kReplica;
  plan_->AwaitNames(group_);
  is_due_ = false;
  return group_;
}

bool BarrierWaits::Take() {
  if (is_due_) return false;  // it could not begin: this process had no memory (BAR-61)
  if (!parked_.empty()) {
    for (PendingWait& need : group_->needs) need.parked = need.parked || parked_.count(&need.server->store()) > 0;
  }
  if (group_->overloaded || !(group_->HasWaited() || plan_->Outdated()())) return true;
  std::vector<StoreRequest> now = plan_->ServersOfNow();
  const bool is_same = std::equal(now.begin(), now.end(), plan_->asked.begin(), HaveSameServers);
  return is_same || !GoesOn(std::move(now));
}

void BarrierWaits::Cancel() {
  const Visibility cancelled = Visibility::NotYet("cancelled");
  group_->cancelled.store(true);
  group_->Refuse(cancelled);
  for (PendingWait& need : group_->needs) {
    if (need.Is(Verdict::kVisible)) need.answer = cancelled;
  }
}

bool BarrierWaits::GoesOn(std::vector<StoreRequest> now) {
  std::set<const Server*> named;
  for (const StoreRequest& each : now) {
    for (const auto& server : each.servers) named.insert(server.get());
  }
  const bool has_time = Clock::now() < DeadlineOf(*group_);
  const bool is_outdated = group_->is_outdated();
  bool has_failed = false;
  std::set<const Server*> joined = named;
  for (const PendingWait& need : group_->needs) {
    if (Fails(need) && (!has_time || (!is_outdated && named.count(need.server.get()) > 0))) return false;
    has_failed = has_failed || Fails(need);
    joined.erase(need.server.get());
  }
  bool is_unknown = false;  // by now, so that the next wait has the names asked for (BAR-67)
  for (std::size_t place = 0; place < now.size(); ++place) {
    is_unknown = is_unknown || (plan_->asked[place].undiscovered.empty() && !now[place].undiscovered.empty());
  }
  is_unknown = is_unknown && plan_->timeout > Duration::zero();
  // Where it ended before its time, or one had failed, nobody has looked whether the others' proofs stand.
  is_due_ = has_time && (is_outdated || has_failed || !joined.empty() || is_unknown);
  for (const PendingWait& need : group_->needs) {
    if (is_due_ && need.parked) parked_.insert(&need.server->store());
  }
  for (std::size_t place = 0; place < now.size(); ++place) now[place].ids = std::move(plan_->asked[place].ids);
  plan_->asked = std::move(now);
  if (!is_due_) Miss(joined);
  return is_due_;
}

void BarrierWaits::Miss(const std::set<const Server*>& joined) {
  for (const StoreRequest& each : plan_->asked) {
    for (const auto& server : each.servers) {
      if (joined.count(server.get()) == 0) continue;
      PendingWait& need = group_->Add(each.ids.front(), server);
      need.answer = Visibility::NotYet(kChanged);
    }
  }
}

}  // namespace antipode
