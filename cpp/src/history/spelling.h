// How keys, lineages and the names of messages stand in a recorded history (spec HIST-28, HIST-30, HIST-34).
#ifndef ANTIPODE_SRC_HISTORY_SPELLING_H_
#define ANTIPODE_SRC_HISTORY_SPELLING_H_

#include <string>
#include <string_view>
#include <vector>

#include "antipode/lineage.h"

namespace antipode::history {

// A key as histories have it; the hashed form of one that is too long.
std::string SpelledKey(std::string_view key);

// A lineage as histories have it: of the application's writes, and without what belongs to one text alone.
std::string SpelledLineage(const Lineage& lineage);

// A lineage that leaves with this message, and names it.
Lineage Named(const Lineage& lineage, std::string_view message);

// A lineage that came in without the names of messages, and those.
struct Came {
  Lineage lineage;
  std::vector<std::string> messages;
};
Came MessagesOf(const Lineage& lineage);

}  // namespace antipode::history

#endif  // ANTIPODE_SRC_HISTORY_SPELLING_H_
