/// \file
/// The waits of one barrier for its writes, the last one at the servers that are known when it passes (spec BAR-65).
#ifndef ANTIPODE_ENGINE_BARRIER_WAITS_H_
#define ANTIPODE_ENGINE_BARRIER_WAITS_H_

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "engine/need.h"
#include "engine/plan.h"

namespace antipode {

/// What a barrier has waited for, and the plan by which it goes on. One thread after the other calls it.
class BarrierWaits {
 public:
  explicit BarrierWaits(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}

  /// With the servers that are known now.
  const Plan& plan() const noexcept { return *plan_; }

  /// The last wait; it began when the first did.
  WaitGroup& group() const noexcept { return *group_; }

  /// A wait, to be parked by the plan: the first one, or the one that follows. `released` is as `WaitGroup` has it.
  std::shared_ptr<WaitGroup> Begin(std::function<void()> released = nullptr);

  /// Takes what the last wait came to; false where another is to follow, by the new plan, under its deadline.
  bool Take();

  /// Ends the wait, which is no pass any more, whatever its servers have shown (BAR-32).
  void Cancel();

 private:
  bool GoesOn(std::vector<StoreRequest> now);
  // Says of servers that joined too late to be asked that they were not.
  void Miss(const std::set<const Server*>& joined);

  std::unique_ptr<Plan> plan_;
  std::shared_ptr<WaitGroup> group_;
  bool is_due_ = false;            // another wait, which has not begun yet
  std::set<const Store*> parked_;  // where an earlier wait was parked
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_BARRIER_WAITS_H_
