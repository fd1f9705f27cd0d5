/// \file
/// Dry-run records: JSON lines of what barriers would have waited for, and of findings (spec REC).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_RECORDS_H_
#define ANTIPODE_SRC_DIAGNOSTICS_RECORDS_H_

#include "antipode/export.h"
#include "base/time.h"

namespace antipode ANTIPODE_EXPORT {
namespace records {

/// Has what the lower rooms say be recorded where that is the mode; called once.
void Listen() noexcept;

/// The process is in dry-run: from now on there are summaries (REC-16).
void Start();

/// Waits until every record put so far is on disk; false where that took too long.
bool Flush(Duration timeout);

/// Writes what was held back, and the last summary.
void End();

/// Counts from nothing, and holds nothing back (tests).
void Forget();

}  // namespace records
}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_RECORDS_H_
