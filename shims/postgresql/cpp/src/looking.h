// Looking at one server: how far it is, which timelines it came from, which rows of epochs it shows.
//
// The position is asked for often and cheaply; the histories and the rows only where they may have changed.
#ifndef ANTIPODE_POSTGRESQL_SRC_LOOKING_H_
#define ANTIPODE_POSTGRESQL_SRC_LOOKING_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "judging.h"
#include "session.h"
#include "targets.h"

namespace antipode::postgresql {

// A timeline, a position and a word of the server's own system that will be judged.
struct WantedPosition {
  std::uint32_t timeline = 0;
  std::uint64_t position = 0;
  std::string word;
};

// What is known of one server, over one connection of ours. Throws Unreachable or Refused.
class Look {
 public:
  Look(Target target, std::string store, Session::Timeout timeout, bool unique_timelines);

  // How long one question may take.
  void set_timeout(Session::Timeout timeout);

  // Where the server is.
  ServerState At(const std::vector<WantedPosition>& wanted);

  // Reads the rows of epochs anew, at most so often; whether it did.
  bool ReadMarks();

  // The server's life, as far as this connection sees it: when it started, and this connection's process.
  const std::string& instance() const { return instance_; }
  // When it started.
  const std::string& life() const { return life_; }
  // The setting by which the server may lose what it has replayed, as it was when this connection was made (SHIM-45);
  // empty where there is none.
  const std::string& relaxed() const { return relaxed_; }

 private:
  void ReadRows();
  std::vector<History> Histories(std::uint64_t system, std::optional<std::uint32_t> timeline, bool recovering);
  std::vector<History> One(std::uint32_t timeline);
  std::uint32_t ReadHistories();
  std::vector<History> Possible(std::uint64_t system);
  std::uint32_t Replaying();
  Session& Replicating();
  std::string NoRight() const;

  const Target target_;
  const std::string store_;
  const bool unique_timelines_;
  Session::Timeout timeout_;
  Session session_;
  std::unique_ptr<Session> replication_;
  bool by_function_ = false;
  bool by_right_ = false;
  bool by_replication_ = false;
  bool table_ = false;
  std::string user_;
  std::string hidden_;  // why the server's timeline cannot be known here; empty where it can
  std::map<std::uint32_t, History> known_;
  Words words_;
  Ends settled_;
  std::optional<std::chrono::steady_clock::time_point> rows_read_at_;
  std::string instance_;
  std::string life_;
  std::string relaxed_;
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_LOOKING_H_
