// Servers in the order in which they came.
#ifndef ANTIPODE_SRC_STORE_SERVER_LIST_H_
#define ANTIPODE_SRC_STORE_SERVER_LIST_H_

#include <memory>
#include <string_view>
#include <vector>

#include "antipode/shim/server.h"

namespace antipode {

/// The one of this address, or null.
inline std::shared_ptr<Server> Find(const std::vector<std::shared_ptr<Server>>& servers, std::string_view address) {
  for (const auto& server : servers) {
    if (server->address() == address) return server;
  }
  return nullptr;
}

}  // namespace antipode

#endif  // ANTIPODE_SRC_STORE_SERVER_LIST_H_
