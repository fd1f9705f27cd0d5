#include "judging.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "positions.h"

namespace antipode::postgresql {
namespace {

constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

std::string WordOf(const ServerState& seen, std::uint64_t system, std::uint32_t timeline) {
  const auto found = seen.words.find({system, timeline});
  return found == seen.words.end() ? std::string() : found->second;
}

// Whether the server's timeline of this number is another one: two standbys that were promoted apart.
std::optional<Visibility> OtherBranch(const Epoch& epoch, std::uint64_t wanted, const ServerState& seen) {
  const std::string word = WordOf(seen, epoch.system, epoch.timeline);
  const std::string number = std::to_string(epoch.timeline);
  if (word == epoch.word) {
    if (!word.empty() || epoch.timeline == 1 || seen.unique_timelines) return std::nullopt;
    return Visibility::Unproven("nothing tells timeline " + number +
                                " from another one of that number: run antipode init, or say unique_timelines=True "
                                "where all servers share one archive of the log",
                                UnprovenKind::kRight);
  }
  if (epoch.word.empty()) {
    if (epoch.timeline == 1 || seen.unique_timelines) return std::nullopt;
    return Visibility::Unproven("written before the table of epochs was there, in timeline " + number,
                                UnprovenKind::kHistory);
  }
  if (!word.empty()) {
    return Visibility::Unproven("its timeline " + number + " is another one: they were promoted apart",
                                UnprovenKind::kHistory);
  }
  if (seen.reached < wanted || !seen.words_fresh) {
    return Visibility::NotYet("at " + LsnOf(seen.reached) + ", wanted " + LsnOf(wanted));
  }
  return Visibility::Unproven("the row of " + epoch.Name() +
                              " in antipode.epochs is not there: it is on another branch, or without that table "
                              "(antipode init)",
                              UnprovenKind::kHistory);
}

Visibility JudgeIn(const Epoch& epoch, std::uint64_t wanted, const History& history, const ServerState& seen) {
  const std::string now = std::to_string(history.timeline);
  const std::string then = std::to_string(epoch.timeline);
  if (epoch.timeline > history.timeline) {
    return Visibility::UnknownEpoch("on timeline " + now + ", wanted timeline " + then);
  }
  const std::optional<std::uint64_t> end = history.EndOf(epoch.timeline);
  if (!end) return Visibility::Unproven("timeline " + then + " is no part of the history of its timeline " + now,
                                          UnprovenKind::kHistory);
  if (wanted > *end) {
    return Visibility::Unproven("timeline " + then + " ended there at " + LsnOf(*end) + ", wanted " + LsnOf(wanted) +
                                    ": it may be lost",
                                UnprovenKind::kHistory);
  }
  if (auto other = OtherBranch(epoch, wanted, seen)) return *other;
  if (seen.reached >= wanted) return Visibility::Visible();
  return Visibility::NotYet("at " + LsnOf(seen.reached) + " of timeline " + now + ", wanted " + LsnOf(wanted));
}

}  // namespace

std::optional<std::uint64_t> History::EndOf(std::uint32_t which) const {
  if (which == timeline) return kForEver;
  const auto found = ends.find(which);
  if (found == ends.end()) return std::nullopt;
  return found->second;
}

History ParseHistory(std::uint32_t timeline, std::string_view text) {
  History history{timeline, {}};
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number;
    std::string lsn;
    words >> number >> lsn;
    const auto which = DecimalOf(number);
    const auto end = NumberOf(lsn);
    if (which && *which <= std::numeric_limits<std::uint32_t>::max() && end) {
      // A standby that was promoted before it came to the fork which its history names has a later end that is smaller:
      // nothing of an older timeline beyond that is there (EPOCH-28).
      for (auto& [older, before] : history.ends) before = std::min(before, *end);
      history.ends[static_cast<std::uint32_t>(*which)] = *end;
    }
  }
  return history;
}

std::string ServerState::EpochNow() const {
  std::uint32_t timeline = 0;
  for (const History& each : histories) timeline = std::max(timeline, each.timeline);
  return Epoch{system, timeline, timeline == 0 ? std::string() : WordOf(*this, system, timeline)}.Name();
}

Ends ServerState::Proved() const {
  Ends found = settled;
  if (histories.empty()) return found;
  for (const auto& [key, word] : words) {
    if (key.first != system) continue;
    std::uint64_t least = reached;
    bool in_all = true;
    for (const History& history : histories) {
      const auto end = history.EndOf(key.second);
      in_all = in_all && end.has_value();
      if (end) least = std::min(least, *end);
    }
    if (!in_all) continue;
    std::uint64_t& known = found[Epoch{key.first, key.second, word}.Name()];
    known = std::max(known, least);
  }
  return found;
}

Visibility JudgeAt(const std::string& name, std::uint64_t wanted, const ServerState& seen) {
  const std::optional<Epoch> epoch = EpochOf(name);
  if (!epoch) return Visibility::Unproven("'" + name + "' is no epoch of PostgreSQL");
  const auto settled = seen.settled.find(name);
  if (settled != seen.settled.end() && wanted <= settled->second) return Visibility::Visible();
  if (epoch->system != seen.system) {
    return Visibility::UnknownEpoch(
        "it is another system (a logical replica, a restored dump, a cluster of its own): positions of " + name +
        " mean nothing there");
  }
  if (seen.histories.empty()) {
    return Visibility::Unproven("its timeline cannot be known: " + seen.why_hidden, UnprovenKind::kRight);
  }
  std::optional<Visibility> bad;
  bool all_bad = true;
  for (const History& history : seen.histories) {
    Visibility answer = JudgeIn(*epoch, wanted, history, seen);
    if (answer.verdict == Verdict::kNotYet) return answer;
    if (answer.verdict != Verdict::kUnproven) {
      all_bad = false;
    } else if (!bad) {
      bad = std::move(answer);
    }
  }
  if (!bad) return Visibility::Visible();
  if (all_bad) return *bad;
  return Visibility::Unanswered("its receiver is down, and it may be on another timeline: " + bad->reason);
}

}  // namespace antipode::postgresql
