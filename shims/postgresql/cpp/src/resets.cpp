#include "resets.h"

#include <libpq-events.h>

namespace antipode::postgresql {
namespace {

using Count = std::shared_ptr<std::atomic<int>>;

int OnEvent(PGEventId event, void* about, void*) {
  if (event == PGEVT_CONNRESET) {
    PGconn* const connection = static_cast<PGEventConnReset*>(about)->conn;
    if (const auto* count = static_cast<Count*>(PQinstanceData(connection, OnEvent))) ++**count;
  } else if (event == PGEVT_CONNDESTROY) {
    delete static_cast<Count*>(PQinstanceData(static_cast<PGEventConnDestroy*>(about)->conn, OnEvent));
  }
  return 1;
}

}  // namespace

Resets ResetsOf(PGconn* connection) {
  if (const auto* known = static_cast<Count*>(PQinstanceData(connection, OnEvent))) return *known;
  auto count = std::make_unique<Count>(std::make_shared<std::atomic<int>>(0));
  const Resets resets = *count;
  const bool is_registered = PQregisterEventProc(connection, OnEvent, "antipode", nullptr) != 0;
  if (is_registered && PQsetInstanceData(connection, OnEvent, count.get()) != 0) count.release();
  return resets;
}

}  // namespace antipode::postgresql
