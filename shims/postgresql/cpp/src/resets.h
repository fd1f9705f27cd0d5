// What libpq has done with a connection, whoever asked for it: the shim, or the application by libpq itself.
#ifndef ANTIPODE_POSTGRESQL_SRC_RESETS_H_
#define ANTIPODE_POSTGRESQL_SRC_RESETS_H_

#include <libpq-fe.h>

#include <atomic>
#include <memory>

namespace antipode::postgresql {

struct Events {
  std::atomic<int> resets{0};    // it was made anew (spec BAR-52)
  std::atomic<int> commits{0};   // a COMMIT was answered (SCOPE-25)
  std::atomic<int> prepares{0};  // a PREPARE TRANSACTION was
};

// The counts of this connection; they stay with it when it is wrapped again.
std::shared_ptr<const Events> EventsOf(PGconn* connection);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_RESETS_H_
