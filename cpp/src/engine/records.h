/// \file
/// Dry-run records: JSON lines of what barriers would have waited for, and of findings (spec REC).
#ifndef ANTIPODE_ENGINE_RECORDS_H_
#define ANTIPODE_ENGINE_RECORDS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/held_result.h"
#include "engine/need.h"
#include "engine/plan.h"

namespace antipode::records {

/// The process is in dry-run: from now on there are summaries (REC-16).
void Start();

/// Counts a barrier that waited for all it was asked for, and passed: for summaries of a process that enforces, where
/// the folder of records was named (REC-26).
void CountEnforced();

/// Follows a barrier's writes with nobody waiting: when all are seen, or after 30 s, one record is written (REC-5).
///
/// The needs of the first look; none where too much is followed already.
std::shared_ptr<Group> Follow(const Plan& plan, const std::vector<Asked>& asked);

/// What can be said of followed writes now: what is not visible at once is not yet.
StoreResults JudgeNow(const Plan& plan, const Group& group);

/// Does what makes a record. Where it fails the record is lost, and its thread goes on (BAR-61).
void Try(const std::function<void()>& what) noexcept;

/// Waits until every record put so far is on disk; false where that took too long.
bool Flush(Duration timeout);

/// Writes what was held back, and the last summary.
void End();

/// Counts from nothing, and holds nothing back (tests).
void Forget();

}  // namespace antipode::records

#endif  // ANTIPODE_ENGINE_RECORDS_H_
