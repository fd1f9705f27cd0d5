/// \file
/// One line a process that says what is in force: mode, region, stores, trust, records (OBS-8).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_ANNOUNCEMENT_H_
#define ANTIPODE_SRC_DIAGNOSTICS_ANNOUNCEMENT_H_

#include <string>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

/// Has the line be logged at the first barrier or request of the process; called once.
void AnnounceFirstUse() noexcept;

/// What is in force, as words: `mode=enforce region=b stores=blog-posts(redis, 2 replicas) trust=private`.
std::string WordsInForce();

/// Forgets that it was told (tests).
void ResetAnnouncement();

}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_ANNOUNCEMENT_H_
