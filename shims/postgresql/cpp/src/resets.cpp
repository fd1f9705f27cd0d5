#include "resets.h"

#include <libpq-events.h>

#include <string_view>

namespace antipode::postgresql {
namespace {

using Counts = std::shared_ptr<Events>;

int OnEvent(PGEventId event, void* about, void*) {
  const auto counts = [](PGconn* connection) { return static_cast<Counts*>(PQinstanceData(connection, OnEvent)); };
  if (event == PGEVT_CONNRESET) {
    if (const Counts* known = counts(static_cast<PGEventConnReset*>(about)->conn)) ++(*known)->resets;
  } else if (event == PGEVT_RESULTCREATE) {
    const auto* created = static_cast<PGEventResultCreate*>(about);
    const std::string_view tag = PQcmdStatus(created->result);
    if (tag != "COMMIT" && tag != "PREPARE TRANSACTION") return 1;
    if (const Counts* known = counts(created->conn)) ++(tag == "COMMIT" ? (*known)->commits : (*known)->prepares);
  } else if (event == PGEVT_CONNDESTROY) {
    delete counts(static_cast<PGEventConnDestroy*>(about)->conn);
  }
  return 1;
}

}  // namespace

std::shared_ptr<const Events> EventsOf(PGconn* connection) {
  if (const auto* known = static_cast<Counts*>(PQinstanceData(connection, OnEvent))) return *known;
  auto counts = std::make_unique<Counts>(std::make_shared<Events>());
  const std::shared_ptr<const Events> events = *counts;
  const bool is_registered = PQregisterEventProc(connection, OnEvent, "antipode", nullptr) != 0;
  if (is_registered && PQsetInstanceData(connection, OnEvent, counts.get()) != 0) counts.release();
  return events;
}

}  // namespace antipode::postgresql
