#include "looking.h"

#include <algorithm>

#include "positions.h"
#include "probe.h"
#include "schema.h"

namespace antipode::postgresql {
namespace {

constexpr char kPlace[] = "SELECT recovering, reached, timeline, system, " ANTIPODE_STARTED " FROM antipode.place()";
// The same without the function: for roles that may see the receiver. Columns are computed from left to right. The name
// of a constant position would be computed beforehand, which a standby refuses.
constexpr char kPlaceByRight[] =
    "SELECT pg_is_in_recovery(),"
    " CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END::text,"
    " CASE WHEN pg_is_in_recovery() THEN (SELECT received_tli FROM pg_stat_get_wal_receiver())"
    " ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer END,"
    " (SELECT system_identifier::text FROM pg_control_system()), " ANTIPODE_STARTED;
constexpr char kHistories[] = "SELECT timeline, history FROM antipode.histories()";
constexpr char kHistoriesByRight[] =
    "SELECT ('x' || left(name, 8))::bit(32)::integer, pg_read_file('pg_wal/' || name)"
    " FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{8}\\.history$'"
    " UNION ALL SELECT (SELECT timeline_id FROM pg_control_checkpoint()), NULL";
constexpr char kRows[] = "SELECT system, timeline, word, counter FROM antipode.epochs";
constexpr char kRights[] =
    "SELECT " ANTIPODE_MAY_CALL("place") " AND " ANTIPODE_MAY_CALL("histories") ", " ANTIPODE_MAY_READ_EPOCHS ","
    " pg_has_role('pg_read_all_stats', 'USAGE') AND"
    " (SELECT rolsuper OR pg_has_role('pg_read_server_files', 'USAGE') FROM pg_roles WHERE rolname = current_user),"
    " (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), current_user::text,"
    " current_setting('fsync'), current_setting('full_page_writes')";
constexpr auto kRowsEvery = std::chrono::milliseconds(100);

bool IsTrue(const Value& value) { return value == "t"; }

std::uint64_t Number(const Value& value) { return value ? DecimalOf(*value).value_or(0) : 0; }

std::uint32_t Timeline(const Value& value) { return static_cast<std::uint32_t>(Number(value)); }

}  // namespace

Look::Look(Target target, std::string store, Session::Timeout timeout, bool unique_timelines)
    : target_(std::move(target)),
      store_(std::move(store)),
      unique_timelines_(unique_timelines),
      timeout_(timeout),
      session_(target_, timeout) {
  const Row rights = session_.One(kRights);
  by_function_ = IsTrue(rights.at(0));
  table_ = IsTrue(rights.at(1));
  by_right_ = IsTrue(rights.at(2));
  by_replication_ = !by_function_ && !by_right_ && IsTrue(rights.at(3));
  user_ = rights.at(4).value_or("");
  relaxed_ = RelaxedSetting(rights.at(5).value_or(""), rights.at(6).value_or(""));
  if (!by_function_ && !by_right_ && !by_replication_) hidden_ = NoRight();
  session_.Prepare("place", by_function_ ? kPlace : kPlaceByRight);
  known_[1] = History{1, {}};
}

std::string Look::NoRight() const {
  return user_ + " may not see which timeline the server follows. Run: antipode init " + store_ +
         " --at URL-OF-THE-PRIMARY --user " + user_ +
         " --run (or give it the attribute REPLICATION, and a line `host replication` in pg_hba.conf)";
}

void Look::set_timeout(Session::Timeout timeout) {
  timeout_ = timeout;
  session_.set_timeout(timeout);
  if (replication_) replication_->set_timeout(timeout);
}

ServerState Look::At(const std::vector<WantedPosition>& wanted) {
  const Row place = session_.Prepared("place");
  const bool recovering = IsTrue(place.at(0));
  ServerState seen;
  seen.system = Number(place.at(3));
  seen.recovering = recovering;
  seen.reached = place.at(1) ? NumberOf(*place.at(1)).value_or(0) : 0;
  life_ = place.at(4).value_or("");
  instance_ = life_ + "/" + std::to_string(session_.backend());
  seen.words_fresh = false;
  const bool rows_missing = std::any_of(wanted.begin(), wanted.end(), [&](const WantedPosition& each) {
    return !each.word.empty() && seen.reached >= each.position && words_.count({seen.system, each.timeline}) == 0;
  });
  if (rows_missing) {
    ReadRows();
    seen.words_fresh = true;
  }
  std::optional<std::uint32_t> timeline;
  if (place.at(2)) timeline = Timeline(place.at(2));
  seen.histories = Histories(seen.system, timeline, recovering);
  seen.words = words_;
  seen.settled = settled_;
  seen.why_hidden = hidden_;
  seen.unique_timelines = unique_timelines_;
  return seen;
}

bool Look::ReadMarks() {
  if (rows_read_at_ && std::chrono::steady_clock::now() - *rows_read_at_ < kRowsEvery) return false;
  ReadRows();
  return true;
}

void Look::ReadRows() {
  rows_read_at_ = std::chrono::steady_clock::now();
  if (!table_) table_ = IsTrue(session_.One(kRights).at(1));
  if (!table_) return;
  Words words;
  Ends settled;
  for (const Row& row : session_.Run(kRows)) {
    const Epoch epoch{Number(row.at(0)), Timeline(row.at(1)), row.at(2).value_or("")};
    if (const std::uint64_t counter = Number(row.at(3)); counter != 0) {
      settled[epoch.Name()] = counter;
    } else {
      words[{epoch.system, epoch.timeline}] = epoch.word;
    }
  }
  words_ = std::move(words);
  settled_ = std::move(settled);
}

std::vector<History> Look::Histories(std::uint64_t system, std::optional<std::uint32_t> timeline, bool recovering) {
  if (!recovering) return One(timeline.value_or(0));
  if (!hidden_.empty()) return {};
  if (by_replication_) return One(Replaying());
  // The receiver streams this timeline, so what is replayed lies on it, or on one that it came from.
  return timeline ? One(*timeline) : Possible(system);
}

std::vector<History> Look::One(std::uint32_t timeline) {
  if (known_.count(timeline) == 0) ReadHistories();
  const auto found = known_.find(timeline);
  if (found == known_.end()) return {};
  return {found->second};
}

// Reads the files that the server has; gives the timeline of its last checkpoint.
std::uint32_t Look::ReadHistories() {
  if (by_replication_) {
    Session& session = Replicating();
    const std::uint32_t timeline = Timeline(session.One("IDENTIFY_SYSTEM").at(1));
    if (timeline > 1) {
      const Row history = session.One("TIMELINE_HISTORY " + std::to_string(timeline));
      known_[timeline] = ParseHistory(timeline, history.at(1).value_or(""));
    }
    return timeline;
  }
  if (!by_function_ && !by_right_) return 0;
  std::uint32_t checkpoint = 0;
  for (const Row& row : session_.Run(by_function_ ? kHistories : kHistoriesByRight)) {
    const std::uint32_t timeline = Timeline(row.at(0));
    if (!row.at(1)) {
      checkpoint = timeline;
    } else if (known_.count(timeline) == 0) {
      known_[timeline] = ParseHistory(timeline, *row.at(1));
    }
  }
  return checkpoint;
}

// The receiver is down: what the server may be following, for it may replay from an archive. It is past its last
// checkpoint and past every row that it shows, and knows the history of what it follows.
std::vector<History> Look::Possible(std::uint64_t system) {
  std::uint32_t least = std::max(ReadHistories(), 1U);
  ReadRows();
  for (const auto& [key, word] : words_) {
    if (key.first == system) least = std::max(least, key.second);
  }
  std::vector<History> found;
  for (const auto& [timeline, history] : known_) {
    if (timeline == least || (timeline > least && history.ends.count(least) != 0)) found.push_back(history);
  }
  return found;
}

std::uint32_t Look::Replaying() { return Timeline(Replicating().One("IDENTIFY_SYSTEM").at(1)); }

Session& Look::Replicating() {
  if (!replication_) {
    try {
      replication_ =
          std::make_unique<Session>(target_, timeout_, std::map<std::string, std::string>{{"replication", "database"}});
    } catch (const UnreachableError& error) {
      throw RefusedError{NoRight() + " (" + error.words + ")", UnprovenKind::kRight};
    }
  }
  return *replication_;
}

}  // namespace antipode::postgresql
