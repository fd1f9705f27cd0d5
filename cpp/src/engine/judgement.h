/// \file
/// From the needs of a barrier to the verdict of each store, and to the error that says so (spec BAR).
#ifndef ANTIPODE_ENGINE_JUDGEMENT_H_
#define ANTIPODE_ENGINE_JUDGEMENT_H_

#include <optional>
#include <string>
#include <vector>

#include "engine/need.h"
#include "engine/plan.h"
#include "model/held_result.h"

namespace antipode {

/// Whether a server that does not answer makes the store unproven (BAR-26).
bool FailsWithoutReplica(const StoreRequest& asked);

/// The verdict of each store. `looked`: nobody waited, so what is not visible is not yet.
StoreResults JudgeStores(const Plan& plan, const WaitGroup& group, Duration waited, bool looked);

/// The verdict of a store of which one server alone was waited for: of all needs of the group.
StoreResult JudgeAlone(const Server& server, const WaitGroup& group, Duration waited);

/// Why these stores, at least one, are unproven, and what cures each kind (BAR-59).
Error UnprovenError(const BarrierResult& result, const std::vector<std::string>& names);

/// What the policies say of a result; nothing where the application goes on (BAR-42 to BAR-47).
std::optional<Error> Enforce(const Plan& plan, const BarrierResult& result);

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_JUDGEMENT_H_
