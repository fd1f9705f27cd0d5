/// \file
/// What one barrier asks for: its options made whole, and the lineage taken apart by store (spec BAR).
#ifndef ANTIPODE_ENGINE_PLAN_H_
#define ANTIPODE_ENGINE_PLAN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/scope.h"
#include "antipode/store.h"
#include "base/time.h"
#include "engine/waiting.h"

namespace antipode {

/// One store that a barrier asks for: the writes to it, and the servers that a pass has to speak of.
struct StoreRequest {
  std::shared_ptr<Store> store;
  std::vector<WriteId> ids;
  std::vector<std::shared_ptr<Server>> servers;
  /// The store's, from before these were its servers: one that joined since is not among them (BAR-35).
  std::uint64_t generation = 0;
  /// The addresses of servers that discovery took away lately, of which a pass does not speak (BAR-54).
  std::vector<std::string> gone = {};
  /// Why nobody knows the servers; empty where somebody does (BAR-53).
  std::string undiscovered = {};
};

/// Whether two name the same servers, from the same set of them.
bool HaveSameServers(const StoreRequest& one, const StoreRequest& other);

/// One barrier, before anything is waited for.
struct Plan {
  ScopePtr scope;
  Lineage lineage;
  std::vector<StoreRequest> asked;
  /// Stores of the lineage that this process has not registered.
  std::vector<std::string> elsewhere;
  /// Those that are unproven for it: they are misspelt (BAR-6), or `ANTIPODE_STORES` says that it will register them
  /// (BAR-7). And `antipode-branches` where a branch is open (BRANCH-18).
  std::map<std::string, Visibility> unregistered;
  /// Stores in dry-run while the process enforces: followed and recorded, not waited for (BAR-49).
  std::vector<StoreRequest> recorded;
  /// Stores in mode off: not judged, so that the result is not complete (BAR-49).
  std::vector<std::string> switched_off;
  Duration timeout{};
  Reach reach = Reach::kRegion;
  Policy on_timeout = Policy::kRaise;
  Policy on_unproven = Policy::kAsTimeout;
  Policy on_vacuous = Policy::kProceed;
  bool require_complete = false;
  bool dry_run = false;
  /// It judges the current scope's own lineage, and that scope has ended (SCOPE-34).
  bool has_ended = false;
  /// Branches that were open long ago: nobody knows what became of them (BRANCH-16).
  bool expired_branches = false;
  /// The stores named in the call; nothing where all registered ones are asked for.
  std::optional<std::vector<std::string>> names;
  std::uint64_t registry_generation = 0;
  std::uint64_t settings_generation = 0;
  std::string site;
  /// Where the scope's own lineage is judged: the asked stores of its writes in flight, and whether each one's outcome
  /// is unknown.
  std::set<std::pair<std::string, bool>> in_doubt;

  /// Every write, at every server where it has to be seen.
  WantedWrites Wanted() const;

  /// Several servers are all to have had the writes at one instant of the call (BAR-64).
  bool LooksTwice() const;

  /// Whether a judged store's set of servers has changed since they were named. Any thread may ask, at any time.
  std::function<bool()> Outdated() const;

  /// Has the barrier wait for the names of servers that a list has never named (BAR-53).
  void AwaitNames(const std::shared_ptr<WaitGroup>& group) const;

  /// The judged stores with the servers that are known now, without the writes to them (BAR-65).
  std::vector<StoreRequest> ServersOfNow() const;

  /// The lineage has writes, and none of their stores is registered here.
  bool Vacuous() const {
    return !elsewhere.empty() && asked.empty() && unregistered.empty() && recorded.empty() && switched_off.empty();
  }

  /// Something of the lineage is not judged, whatever the servers answer (BAR-15).
  bool LeavesUnjudged() const;

  /// The stores whose marks of incompleteness count for `complete`: misspelt ones, too.
  std::vector<std::string> AskedNames() const;
};

/// Checks a call and takes its lineage apart. The programmer's mistakes fail here, at once.
Result<Plan> MakePlan(ScopePtr scope, const Lineage* lineage, const BarrierOptions& options, const Site& site);

/// Says once a minute and site that a barrier judged nothing, with both lists of names (BAR-20).
void WarnVacuous(const Plan& plan);

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_PLAN_H_
