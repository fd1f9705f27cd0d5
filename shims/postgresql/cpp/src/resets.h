// How often libpq has made a connection anew, whoever asked for it: the shim, or the application by PQreset itself
// (spec BAR-52).
#ifndef ANTIPODE_POSTGRESQL_SRC_RESETS_H_
#define ANTIPODE_POSTGRESQL_SRC_RESETS_H_

#include <libpq-fe.h>

#include <atomic>
#include <memory>

namespace antipode::postgresql {

using Resets = std::shared_ptr<const std::atomic<int>>;

// The count of this connection; it stays with it when it is wrapped again.
Resets ResetsOf(PGconn* connection);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_RESETS_H_
