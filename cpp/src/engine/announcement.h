/// \file
/// One line a process that says what is in force: mode, region, stores, trust, records (OBS-8).
#ifndef ANTIPODE_ENGINE_ANNOUNCEMENT_H_
#define ANTIPODE_ENGINE_ANNOUNCEMENT_H_

#include <string>

namespace antipode {

/// Logs the line at the first barrier or request of the process; later calls cost a look at a flag.
void Announce();

/// What is in force, as words: `mode=enforce region=b stores=blog-posts(redis, 2 replicas) trust=private`.
std::string WordsInForce();

/// Forgets that it was told (tests).
void ResetAnnouncement();

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_ANNOUNCEMENT_H_
