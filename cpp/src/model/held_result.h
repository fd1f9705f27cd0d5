/// \file
/// What a barrier's result holds.
#ifndef ANTIPODE_SRC_MODEL_HELD_RESULT_H_
#define ANTIPODE_SRC_MODEL_HELD_RESULT_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "antipode/barrier_result.h"

namespace antipode {

using StoreResults = std::map<std::string, StoreResult>;

struct BarrierResult::Held {
  bool satisfied = false;
  bool left_unjudged = false;
  bool vacuous = false;
  bool dry_run = false;
  /// The mode of the process is off.
  bool all_off = false;
  /// Stores of the lineage whose own mode is off.
  std::vector<std::string> off;
  std::chrono::nanoseconds waited{};
  StoreResults stores;
  std::vector<Gap> gaps;
  std::optional<Error> error;
};

/// A result that judged nothing, because the call was a mistake.
BarrierResult Mistaken(Error error);

/// The same result for a barrier that did not wait.
BarrierResult WithoutWait(const BarrierResult& result);

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_HELD_RESULT_H_
