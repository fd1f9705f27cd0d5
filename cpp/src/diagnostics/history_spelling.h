// How keys and lineages stand in a recorded history (spec HIST-28, HIST-34).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_HISTORY_SPELLING_H_
#define ANTIPODE_SRC_DIAGNOSTICS_HISTORY_SPELLING_H_

#include <string>
#include <string_view>

#include "antipode/lineage.h"

namespace antipode::history {

// A key as histories have it; the hashed form of one that is too long.
std::string SpelledKey(std::string_view key);

// A lineage as histories have it: of the application's writes, and without what belongs to one text alone.
std::string SpelledLineage(const Lineage& lineage);

}  // namespace antipode::history

#endif  // ANTIPODE_SRC_DIAGNOSTICS_HISTORY_SPELLING_H_
