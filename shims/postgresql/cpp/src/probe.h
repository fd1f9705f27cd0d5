// What a server allows, asked when a client is wrapped: rights, settings, a pooler before it (spec SHIM-3).
#ifndef ANTIPODE_POSTGRESQL_SRC_PROBE_H_
#define ANTIPODE_POSTGRESQL_SRC_PROBE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "session.h"
#include "targets.h"

namespace antipode::postgresql {

// What a server allows.
struct Facts {
  bool reached = false;
  bool recovering = false;
  std::string synchronous = "on";
  std::string wal_level = "replica";
  // The setting by which it may lose what it acknowledged or replayed, in a crash; empty where there is none.
  std::string relaxed;
  std::string user;
  bool marks = false;
  std::vector<std::pair<std::string, std::string>> unsure;  // what makes texts unsure that look like reads
  std::string pooler;  // the mode of a pooler, `session`, `transaction` or `statement`; empty where there is none

  // Why positions from here would prove nothing; empty where they do (SHIM-3, SHIM-45).
  std::string Unfit(bool relaxed_durability) const;
};

// Which of the two settings is off; empty where none is.
std::string RelaxedSetting(std::string_view fsync, std::string_view full_page_writes);

// What is wrong with a server of such a setting, and what to do.
std::string NotDurable(const std::string& setting);

// Asks a server; throws Unreachable or Refused where it does not answer.
Facts Probe(const Target& target, Session::Timeout timeout);

// What is said where the table of epochs cannot be used.
std::string NoTable(const std::string& store, const std::string& user);

// One line a minute for what makes proofs dear.
void SayWhatLacks(const std::string& store, const Target& target, const Facts& facts);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_PROBE_H_
