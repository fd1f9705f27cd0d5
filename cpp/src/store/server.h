/// \file
/// How a store gets its servers.
#ifndef ANTIPODE_SRC_STORE_SERVER_H_
#define ANTIPODE_SRC_STORE_SERVER_H_

#include <any>
#include <memory>
#include <string>

#include "antipode/shim/server.h"

namespace antipode {

/// Return a new server of a store, which nobody asks yet. The engine, which asks it, defines this.
std::shared_ptr<Server> MakeServer(Store& store, std::shared_ptr<Shim> shim, std::string address, std::any target);

}  // namespace antipode

#endif  // ANTIPODE_SRC_STORE_SERVER_H_
