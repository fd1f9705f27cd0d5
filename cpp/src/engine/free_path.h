/// \file
/// The free path: a barrier that repeats what was just proved, without I/O or instrument (spec BAR-33 to BAR-36).
#ifndef ANTIPODE_ENGINE_FREE_PATH_H_
#define ANTIPODE_ENGINE_FREE_PATH_H_

#include <optional>

#include "engine/plan.h"

namespace antipode {

/// The result of repeating the scope's barrier while its proofs are fresh; nothing where it has to be asked. Options
/// out of the ordinary are left to the long way, which refuses mistakes.
std::optional<BarrierResult> FreePass(const LineageScope& scope, const BarrierOptions& options);

/// Keeps the proof of a whole pass over positions in the scope, where the next barrier finds it.
void Remember(const Plan& plan, const BarrierResult& result);

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_FREE_PATH_H_
