// What one look at a server proves: positions by its timeline's history and by the rows of epochs (spec EPOCH-28,
// EPOCH-29).
#ifndef ANTIPODE_POSTGRESQL_SRC_JUDGING_H_
#define ANTIPODE_POSTGRESQL_SRC_JUDGING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/shim/epochs.h"
#include "antipode/verdict.h"

namespace antipode::postgresql {

// The timelines that a timeline came from, and where each of them ended for it.
struct History {
  std::uint32_t timeline = 0;
  std::map<std::uint32_t, std::uint64_t> ends;

  // Up to where a timeline belongs to this history; nothing where it is no part of it.
  std::optional<std::uint64_t> EndOf(std::uint32_t which) const;
};

// A history file: lines `timeline  switch-position  why`, the oldest first.
History ParseHistory(std::uint32_t timeline, std::string_view text);

// System and timeline to the word of the branch that a server is on; absent where no row of it is there.
using Words = std::map<std::pair<std::uint64_t, std::uint32_t>, std::string>;

// One look at a server. `reached` was read first, everything else after it.
struct ServerState {
  std::uint64_t system = 0;
  bool recovering = false;
  std::uint64_t reached = 0;  // replayed up to here (a standby), flushed up to here (a primary)
  // What it may be following: one where it is known, several while its receiver is down, none where it is hidden.
  std::vector<History> histories;
  Words words;
  Ends settled;              // epochs that an operator has vouched for
  bool words_fresh = true;   // whether the words were read after `reached`
  std::string why_hidden;    // why the history cannot be known
  bool unique_timelines = false;  // the operator's word that no two servers call different timelines by one number

  // The epoch that the server is in, as far as is known.
  std::string EpochNow() const;

  // Per epoch, up to where everything is here; only what holds in every history that it may be following.
  Ends Proved() const;
};

// What one look proves of one position.
Visibility JudgeAt(const std::string& name, std::uint64_t wanted, const ServerState& seen);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_JUDGING_H_
