#ifndef ANTIPODE_SRC_ENGINE_BRANCHES_H_
#define ANTIPODE_SRC_ENGINE_BRANCHES_H_

#include "antipode/lineage.h"

namespace antipode {

// What a language without branches owes them: it carries them, and passes none (BRANCH-16 to BRANCH-19). An open branch
// stands for writes that a task has still to make, to whichever store.

// The store whose entries are open branches.
inline constexpr const char* kBranches = "antipode-branches";
inline constexpr const char* kOpenBranches =
    "open branches, which this language does not look up: their tasks may have writes to make";
inline constexpr const char* kExpiredBranches =
    "branches that were open more than 24 hours ago: nobody knows what became of them";

// Whether a lineage has a branch that may be open still.
bool HasOpenBranches(const Lineage& lineage);

}  // namespace antipode

#endif  // ANTIPODE_SRC_ENGINE_BRANCHES_H_
