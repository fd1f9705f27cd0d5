// The names of messages that lineages bear, where a history is recorded (spec HIST-30).
#ifndef ANTIPODE_SRC_PROPAGATION_MESSAGE_NAMES_H_
#define ANTIPODE_SRC_PROPAGATION_MESSAGE_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "antipode/lineage.h"

namespace antipode {

// A lineage that leaves with this message, and names it.
Lineage NamedServers(const Lineage& lineage, std::string_view message);

// A lineage that came in without the names of messages, and those.
struct NamedMessages {
  Lineage lineage;
  std::vector<std::string> messages;
};
NamedMessages MessagesOf(const Lineage& lineage);

}  // namespace antipode

#endif  // ANTIPODE_SRC_PROPAGATION_MESSAGE_NAMES_H_
