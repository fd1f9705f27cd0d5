/// \file
/// The failover fuzzer: random failovers on a store's real servers, every write judged (spec EPOCH-27).
///
/// Each run takes a primary and two replicas or more, writes through the wrapped client, slows and cuts links, kills
/// and restarts servers, and promotes again and again: with and without lost writes, and twice with no write between.
/// Writes are judged at every server in the middle of the run, across promotions by parked barriers, and all of them at
/// the end.
#ifndef ANTIPODE_TESTING_FAILOVER_H_
#define ANTIPODE_TESTING_FAILOVER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "antipode/result.h"

namespace antipode::testing {

/// Chance that gives the same run for the same seed.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}
  /// A whole number, both ends included.
  int Number(int least, int most) {
    return least + static_cast<int>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  /// True with this likelihood.
  bool Happens(double likelihood) { return Number(0, 999) < static_cast<int>(likelihood * 1000); }
  /// One of these.
  template <class T>
  const T& Choose(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(Number(0, static_cast<int>(from.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

/// One run's servers of a store, in the words of the fuzzer; its end ends the servers.
///
/// It is made in a registry of its own, and wraps a client at every server then, under `store`, with all servers as
/// replicas. What is done to servers may return before it has taken effect, unless it says otherwise: the fuzzer wants
/// the states in between.
class FailoverDriver {
 public:
  virtual ~FailoverDriver() = default;

  /// The store's logical name.
  virtual std::string store() const { return "fuzz"; }
  /// All servers, three at least.
  virtual std::vector<std::string> servers() const = 0;
  /// The server that takes writes now.
  virtual std::string primary() const = 0;
  /// The servers that follow it now; an old primary does not until `Rejoin`.
  virtual std::vector<std::string> replicas() const = 0;
  /// The server's address as the shim gives it, or a part of it that no other server's has.
  virtual std::string Address(const std::string& server) const = 0;

  // Data

  /// Writes by the wrapped client of a server, in the current scope.
  virtual void Write(const std::string& server, const std::string& key, const std::string& value) = 0;
  /// Whether a server has the value now, asked without Antipode; nothing where it cannot be asked. Any thread.
  virtual std::optional<bool> Shows(const std::string& server, const std::string& key, const std::string& value) = 0;
  /// Names which data a server has: its process and the history that it follows; nothing while the data are being
  /// replaced.
  ///
  /// A pass is false only where this was the same before the wait and after the look: what is replaced in between is an
  /// exposure that the page states (BAR-24).
  virtual std::optional<std::string> History(const std::string& server) = 0;
  /// Gives marks the time that they have in real life: what is written so far is proved beyond its epoch.
  virtual void SettleMarks() {}

  // Faults

  /// The replica's link is so slow from now on.
  virtual void Lag(const std::string& replica, std::chrono::milliseconds lag) = 0;
  /// The replica's link carries nothing, in one of the ways in which links fail, until `Heal`.
  virtual void Cut(const std::string& replica, Chance& chance) = 0;
  /// It carries again; `wait`: returns when data flow.
  virtual void Heal(const std::string& replica, bool wait) = 0;
  /// Kills a replica and starts it again. `write` may be called in between, so that it is behind then.
  virtual void RestartReplica(const std::string& replica, const std::function<void()>& write, bool wait) = 0;
  /// The replica becomes the primary and the other replicas follow it; returns when it takes writes. Without `lost`
  /// what is on its way arrives first. With it: once nothing of the old primary's leaves any more `lost` is called,
  /// which writes there, and what it wrote never arrives anywhere.
  virtual void Promote(const std::string& replica, const std::function<void()>& lost) = 0;
  /// A server that follows nobody, or the wrong one, follows the primary, giving up what that has not got.
  virtual void Rejoin(const std::string& server, bool wait) = 0;
  /// The primary ends and starts again with less than it had: what `write` writes in between is lost there. False where
  /// there is no such fault.
  virtual bool CrashPrimary(const std::function<void()>& /*write*/) { return false; }
  /// The end: links carry without lag, every server follows the primary.
  virtual void Calm() = 0;
  /// Returns when every server has what the primary has, marks included.
  virtual void WaitCaughtUp() = 0;
};

/// What was found; `Faults` must stay empty.
struct Tally {
  int runs = 0;
  int writes = 0;
  int positionless = 0;  ///< Writes that left an incomplete lineage instead of a version.
  int lost = 0;
  int present = 0;
  int present_unproven = 0;
  std::map<std::string, int> judged;
  std::vector<std::string> lost_passed;   ///< False passes.
  std::vector<std::string> hangs;
  std::vector<std::string> rash;  ///< Answered unproven in the middle of a run, and visible within the deadline.
  std::vector<std::string> looked_empty;  ///< Lineages of writes that look as if nothing had been written.

  std::vector<std::string> Faults() const;
  /// Of the writes that a server has at the end, the share that cannot be proved there.
  double UnprovenShare() const;
  std::string ToString() const;
};

/// Makes one run's servers.
using MakeDriver = std::function<std::unique_ptr<FailoverDriver>(std::uint64_t seed)>;

/// Plays so many runs, each on servers of its own, and tells after each what was found.
Tally RunFailovers(const MakeDriver& make, int runs, std::uint64_t seed,
                   const std::function<void(const std::string&)>& say = nullptr);

/// What has to hold of a tally.
struct FailoverBounds {
  /// The share of the present writes that may be unproven at the end.
  std::optional<double> most_unproven;
  /// The share of the answers that may be unproven for what is seen within the deadline: where a position lies behind
  /// its write, a history may fork between the two.
  double most_rash = 0.0;
};

/// Fails where anything passed falsely, hung or was called unproven rashly, and where the runs were worth nothing.
Result<void> CheckTally(const Tally& tally, const FailoverBounds& bounds = {});

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTING_FAILOVER_H_
