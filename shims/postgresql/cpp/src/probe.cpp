#include "probe.h"

#include "antipode/logs.h"
#include "schema.h"
#include "unsure.h"

namespace antipode::postgresql {
namespace {

constexpr char kFacts[] =
    "SELECT pg_is_in_recovery(), pg_backend_pid(), current_setting('synchronous_commit'), current_setting('wal_level'),"
    " current_user::text, " ANTIPODE_MAY_CALL("mark") ", current_setting('fsync'), current_setting('full_page_writes')";
constexpr char kBackend[] = "SELECT pg_backend_pid()";

// The mode of the pooler between: whether a connection keeps its server process between transactions.
std::string PoolerMode(const Target& target, Session& first, const std::string& backend, Session::Timeout timeout) {
  Session second(target, timeout);
  try {
    second.Run("BEGIN");
  } catch (const RefusedError&) {
    return "statement";  // which takes no transactions
  } catch (const UnreachableError&) {
    return "statement";
  }
  const std::string taken = second.One(kBackend).at(0).value_or("");
  // In transaction mode the first one has given its process back, and gets another while that one is in use.
  const std::string again = first.One(kBackend).at(0).value_or("");
  second.Run("COMMIT");
  return taken != backend && again == backend ? "session" : "transaction";
}

}  // namespace

std::string RelaxedSetting(std::string_view fsync, std::string_view full_page_writes) {
  return fsync == "off" ? "fsync" : full_page_writes == "off" ? "full_page_writes" : "";
}

std::string NotDurable(const std::string& setting) {
  return "has " + setting + " = off: after a crash it may say that it has what it lost. Set " + setting +
         " = on, or, where a server that crashed is rebuilt before it serves readers, say so: "
         "Options(…).RelaxedDurability()";
}

std::string Facts::Unfit(bool relaxed_durability) const {
  if (!pooler.empty() && pooler != "session") {
    return "is reached through a pooler in " + pooler +
           " mode: a statement and the question for its position may go to different servers. Connect to the server, "
           "or "
           "set pool_mode = session for this database";
  }
  if (reached && wal_level == "minimal") {
    return "has wal_level = " + wal_level + ": no standby can follow it. Set wal_level = replica, and restart it";
  }
  if (!relaxed.empty() && !relaxed_durability) return NotDurable(relaxed);
  return {};
}

Facts Probe(const Target& target, Session::Timeout timeout) {
  Session session(target, timeout);
  const Row row = session.One(kFacts);
  Facts facts;
  facts.reached = true;
  facts.recovering = row.at(0) == "t";
  const std::string backend = row.at(1).value_or("");
  facts.synchronous = row.at(2).value_or("on");
  facts.wal_level = row.at(3).value_or("replica");
  facts.user = row.at(4).value_or("");
  facts.marks = row.at(5) == "t";
  facts.relaxed = RelaxedSetting(row.at(6).value_or(""), row.at(7).value_or(""));
  for (const Row& each : session.Run(kUnsureQuestion)) {
    facts.unsure.emplace_back(each.at(0).value_or(""), each.at(1).value_or(""));
  }
  if (backend != std::to_string(session.backend())) facts.pooler = PoolerMode(target, session, backend, timeout);
  return facts;
}

std::string NoTable(const std::string& store, const std::string& user) {
  return "there is no table of epochs that its user may use: after a failover its positions are unproven. Run: "
         "antipode init " +
         store + " --at URL-OF-THE-PRIMARY --user " + user + " --run";
}

void SayWhatLacks(const std::string& store, const Target& target, const Facts& facts) {
  if (!facts.reached || facts.recovering || facts.synchronous != "off") return;
  logs::Warn("AP509", "async " + store,
             store + ": " + target.address +
                 " commits asynchronously (synchronous_commit = off): each recorded write is flushed by a small commit "
                 "behind it. Set it on, or async_commits='incomplete'");
}

}  // namespace antipode::postgresql
