#include "engine/run.h"

#include <algorithm>
#include <utility>

#include "base/in_force.h"
#include "base/observers.h"
#include "engine/barrier_log.h"
#include "engine/branches.h"
#include "engine/free_path.h"
#include "engine/judgement.h"
#include "engine/need.h"
#include "model/held_result.h"
#include "store/server.h"

namespace antipode {
namespace {

BarrierResult PassedThrough() {
  auto held = std::make_shared<BarrierResult::Held>();
  held->satisfied = true;
  held->left_unjudged = true;
  held->all_off = true;
  return BarrierResult(std::move(held));
}

bool LeftOut(const StoreResults& stores) {
  return std::any_of(stores.begin(), stores.end(), [](const auto& each) {
    const auto& servers = each.second.servers;
    return std::any_of(servers.begin(), servers.end(), [](const ServerResult& server) { return server.left_out; });
  });
}

BarrierResult::Held Hold(const Plan& plan, Duration waited, StoreResults stores) {
  BarrierResult::Held held;
  if (plan.scope) held.gaps = plan.scope->gaps();
  held.left_unjudged = LeftOut(stores) || !plan.recorded.empty() || plan.LeavesUnjudged();
  for (const auto& [store, is_unknown] : plan.in_doubt) {  // BAR-56
    const char* const state =
        is_unknown ? "its outcome is not known" : "it has not been answered, or not been committed";
    held.gaps.push_back({"pending", store, std::string("a write of this scope: ") + state});
  }
  if (plan.has_ended) held.gaps.push_back({"unscoped", "", "the current scope has ended: this may be another request"});
  if (plan.expired_branches) held.gaps.push_back({"branch", "", kExpiredBranches});
  held.vacuous = plan.Vacuous();
  held.off = plan.switched_off;
  held.waited = waited;
  held.stores = std::move(stores);
  return held;
}

// What can be said of followed writes now: what is not visible at once is not yet. Null: none is followed.
StoreResults JudgeNow(const Plan& plan, const WaitGroup* followed) {
  WaitGroup now(Duration::zero());  // what is followed changes meanwhile: each need is copied under its server's lock
  if (followed != nullptr) {
    for (const PendingWait& need : followed->needs) need.server->impl().CopyTo(now.Add(need.write_id, need.server), need);
  }
  return JudgeStores(plan, now, Duration::zero(), true);
}

// What is not visible is followed in the background and recorded; nothing is waited for or enforced (BAR-48).
BarrierResult RecordOnly(const Plan& plan) {
  const bool vacuous = plan.Vacuous();
  if (vacuous) WarnVacuous(plan);
  const std::shared_ptr<WaitGroup> followed = Events().BarrierRecorded(plan, plan.asked);
  BarrierResult::Held held = Hold(plan, Duration::zero(), JudgeNow(plan, followed.get()));
  held.satisfied = true;
  held.left_unjudged = true;
  held.dry_run = true;
  CountBarrier(vacuous ? BarrierOutcome::kVacuous : BarrierOutcome::kSatisfied);
  return BarrierResult(std::make_shared<const BarrierResult::Held>(std::move(held)));
}

BarrierOutcome OutcomeOf(const Plan& plan, const BarrierResult& result, const WaitGroup& group) {
  if (result.vacuous()) return BarrierOutcome::kVacuous;
  if (result.satisfied()) {
    return plan.require_complete && !result.complete() ? BarrierOutcome::kIncomplete : BarrierOutcome::kSatisfied;
  }
  if (group.overloaded) return BarrierOutcome::kOverloaded;
  const auto& stores = result.stores();
  const bool unproven = std::any_of(stores.begin(), stores.end(),
                                    [](const auto& each) { return each.second.verdict == Verdict::kUnproven; });
  return unproven ? BarrierOutcome::kUnproven : BarrierOutcome::kTimedOut;
}

// Counts a barrier, and says so if something had to be waited for (OBS-1, OBS-9).
void Tell(const Plan& plan, const BarrierResult& result, const WaitGroup& group) {
  const bool waited = std::any_of(group.needs.begin(), group.needs.end(), [](const PendingWait& need) { return need.parked; });
  const BarrierOutcome outcome = OutcomeOf(plan, result, group);
  CountBarrier(waited || outcome != BarrierOutcome::kSatisfied ? outcome : BarrierOutcome::kFree);
  if (result.vacuous()) WarnVacuous(plan);
  if (waited) Events().BarrierWaited(plan, result, group, outcome);
}

}  // namespace

BarrierStart Begin(const Lineage* lineage, const BarrierOptions& options, const Site& site) {
  BarrierStart begun;
  ScopePtr scope = CurrentScope();
  if (lineage == nullptr && scope) {
    begun.result = FreePass(*scope, options);
    if (begun.result) return begun;
  }
  if (InForce()->mode == Mode::kOff) {
    begun.result = PassedThrough();
    return begun;
  }
  Result<Plan> made = MakePlan(std::move(scope), lineage, options, site);
  if (!made.ok()) {
    begun.result = Mistaken(made.error());
    return begun;
  }
  begun.plan = std::make_unique<Plan>(std::move(made).value());
  for (const StoreRequest& asked : begun.plan->asked) BarrierLog::Note(asked.store->name());
  if (begun.plan->dry_run) {
    begun.result = RecordOnly(*begun.plan);
  } else if (!begun.plan->recorded.empty()) {
    Events().BarrierRecorded(*begun.plan, begun.plan->recorded);
  }
  return begun;
}

BarrierResult Finish(const Plan& plan, const WaitGroup& group) {
  const Duration waited = Clock::now() - group.since;
  const bool looked = plan.timeout == Duration::zero();
  BarrierResult::Held held = Hold(plan, waited, JudgeStores(plan, group, waited, looked));
  // A store without a single server has nothing to ask, and no needs: that is no pass, and `JudgeStores` says so.
  const auto visible = [&](const std::string& name) {
    const auto found = held.stores.find(name);
    return found != held.stores.end() && found->second.verdict == Verdict::kVisible;
  };
  held.satisfied = plan.unregistered.empty() &&
                   std::all_of(plan.asked.begin(), plan.asked.end(),
                               [&](const StoreRequest& asked) { return visible(asked.store->name()); });
  const bool left_out = LeftOut(held.stores);
  auto shared = std::make_shared<BarrierResult::Held>(std::move(held));
  BarrierResult result{shared};
  Tell(plan, result, group);
  if (shared->satisfied && !plan.asked.empty() && !left_out) Events().BarrierEnforced();
  if (shared->satisfied && !left_out) Remember(plan, result);
  shared->error = Enforce(plan, result);
  return result;
}

}  // namespace antipode
