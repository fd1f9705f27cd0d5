/// \file
/// What every form of a barrier does before it waits, and after.
#ifndef ANTIPODE_ENGINE_RUN_H_
#define ANTIPODE_ENGINE_RUN_H_

#include <memory>
#include <optional>

#include "engine/need.h"
#include "engine/plan.h"

namespace antipode {

/// The result where nothing is to be waited for, else the plan.
struct BarrierStart {
  std::optional<BarrierResult> result;
  std::unique_ptr<Plan> plan;
};

BarrierStart Begin(const Lineage* lineage, const BarrierOptions& options, const Site& site);

/// The group is over, or was given up: judges, counts, remembers, and applies the policies.
BarrierResult Finish(const Plan& plan, const WaitGroup& group);

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_RUN_H_
