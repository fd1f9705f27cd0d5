#include "store/server.h"

#include <utility>

namespace antipode {

Server::Server(Store& store, std::string address, std::any target)
    : store_(store), address_(std::move(address)), target_(std::move(target)) {}

}  // namespace antipode
