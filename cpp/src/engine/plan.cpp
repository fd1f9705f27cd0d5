#include "engine/plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "antipode/logs.h"
#include "base/in_force.h"
#include "base/observers.h"
#include "engine/branches.h"
#include "model/quote.h"
#include "model/text.h"
#include "scope/scope_impl.h"
#include "store/registry.h"
#include "store/store_impl.h"

namespace antipode {
namespace {

constexpr double kLongSeconds = 60;  // a longer deadline is probably one in milliseconds (BAR-58)

Error Mistake(MessageCode code, const std::string& words) { return {ErrorCode::kConfiguration, code, words}; }

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether a call that names these stores asks for it, or for one that it is taken for.
bool IsAsked(const std::vector<std::string>& names, const std::string& name, const std::vector<std::string>& twins) {
  const auto is_named = [&](const std::string& each) { return Has(names, each); };
  return is_named(name) || std::any_of(twins.begin(), twins.end(), is_named);
}

Result<Duration> Deadline(const BarrierOptions& options, const ScopePtr& scope, const std::vector<StoreRequest>& asked,
                          const std::string& site) {
  Duration limit{};
  if (options.timeout()) {
    const double seconds = options.timeout()->count();
    if (!(seconds >= 0 && seconds <= Seconds(kLongestTimeout))) {
      return Mistake("AP109", "Timeout(" + std::to_string(seconds) + " s): want 0 to 3600 s");
    }
    limit = std::chrono::duration_cast<Duration>(BarrierOptions::Seconds(seconds));
  } else if (asked.empty()) {
    limit = TimeoutOf("");
  } else {
    for (const StoreRequest& each : asked) limit = std::max<Duration>(limit, each.store->timeout());
  }
  if (Seconds(limit) > kLongSeconds) {
    logs::Warn("AP110", "timeout " + site,
               "a barrier may wait for " + std::to_string(std::llround(Seconds(limit))) +
                   " s: variables are in milliseconds. site=" + site);
  }
  const auto deadline = scope ? scope->deadline() : std::nullopt;
  if (deadline) limit = std::min<Duration>(limit, std::max<Duration>(*deadline - Clock::now(), Duration::zero()));
  return limit;
}

Result<void> CheckRedeliver(const ScopePtr& scope) {
  if (!scope || !scope->delivery()) {
    return Mistake("AP113", "OnTimeout(kRedeliver) needs a message to give back: this is not a consumer's scope");
  }
  const Delivery& delivery = *scope->delivery();
  const std::string refusal = scope->closed() ? "its scope has ended" : delivery.Refusal();
  if (!delivery.can_redeliver || !refusal.empty()) {
    return Mistake("AP113", "OnTimeout(kRedeliver): the message cannot go back: " + refusal);
  }
  return {};
}

Result<Policy> CheckedPolicy(std::string_view option, Policy policy, std::initializer_list<Policy> allowed,
                             const ScopePtr& scope) {
  if (std::find(allowed.begin(), allowed.end(), policy) == allowed.end()) {
    std::vector<std::string> words;
    for (const Policy each : allowed) words.emplace_back(ToString(each));
    return Mistake("AP111",
                   std::string(option) + "(" + std::string(ToString(policy)) + "): want " + Joined(words, ", "));
  }
  if (policy == Policy::kRedeliver) {
    const Result<void> can = CheckRedeliver(scope);
    if (!can.ok()) return can.error();
  }
  return policy;
}

Result<void> TakePolicies(Plan& plan, const BarrierOptions& options, const Settings& now) {
  const auto on_timeout =
      CheckedPolicy("OnTimeout", options.on_timeout().value_or(now.on_timeout),
                    {Policy::kRaise, Policy::kProceed, Policy::kRedeliver}, plan.scope);
  if (!on_timeout.ok()) return on_timeout.error();
  const auto on_unproven =
      CheckedPolicy("OnUnproven", options.on_unproven().value_or(now.on_unproven),
                    {Policy::kRaise, Policy::kProceed, Policy::kRedeliver, Policy::kAsTimeout}, plan.scope);
  if (!on_unproven.ok()) return on_unproven.error();
  const auto on_vacuous = CheckedPolicy("OnVacuous", options.on_vacuous().value_or(now.on_vacuous),
                                        {Policy::kRaise, Policy::kProceed}, plan.scope);
  if (!on_vacuous.ok()) return on_vacuous.error();
  plan.on_timeout = *on_timeout;
  plan.on_unproven = *on_unproven;
  plan.on_vacuous = *on_vacuous;
  return {};
}

// A store with the servers that are known now, and with what is said of the others where a barrier relies on them.
StoreRequest WithServers(std::shared_ptr<Store> store, Reach reach, bool waits) {
  constexpr int kMostTries = 100;
  const bool is_own = reach == Reach::kReplica;
  StoreRequest asked;
  for (int left = kMostTries; left > 0; --left) {
    asked.generation = store->impl().generation();  // first: what changes meanwhile shows
    asked.servers = store->Servers(is_own);
    if (waits) {
      asked.gone = store->Gone(is_own);
      asked.undiscovered = store->Undiscovered(is_own);
    }
    // Else who left may be in both, and who joined in neither.
    if (store->impl().generation() == asked.generation) break;
  }
  asked.store = std::move(store);
  return asked;
}

void TakeApart(Plan& plan, const Registry& registry, const Settings& now) {
  const bool enforcing = now.mode == Mode::kEnforce && !plan.dry_run;
  for (const std::string& name : plan.lineage.stores()) {
    if (name == kBranches) {
      if (HasOpenBranches(plan.lineage)) {
        plan.unregistered.emplace(name, Visibility::Unproven(kOpenBranches));
      } else {
        plan.expired_branches = true;
      }
      continue;
    }
    const std::shared_ptr<Store> store = registry.Get(name);
    const std::vector<std::string> twins = store ? std::vector<std::string>() : TwinsOf(name);
    if (plan.names && !IsAsked(*plan.names, name, twins)) continue;
    if (!twins.empty()) {
      plan.unregistered.emplace(name, Misspelt(name, twins.front()));
      continue;
    }
    if (!store && Has(now.stores, name)) {
      const char* const expected = "listed in ANTIPODE_STORES, and not registered yet";
      plan.unregistered.emplace(name, Visibility::Unproven(expected, UnprovenKind::kNotOpened));
      continue;
    }
    if (!store) {
      plan.elsewhere.push_back(name);
      continue;
    }
    const Mode mode = store->mode();
    if (mode == Mode::kOff) {
      plan.switched_off.push_back(name);
    } else {
      auto& group = enforcing && mode == Mode::kDryRun ? plan.recorded : plan.asked;
      const bool waits = enforcing && &group == &plan.asked;  // records are of the servers that are known
      group.push_back(WithServers(store, plan.reach, waits));
      group.back().ids = plan.lineage.OfStore(name);
    }
  }
}

}  // namespace

bool HaveSameServers(const StoreRequest& one, const StoreRequest& other) {
  return one.generation == other.generation && one.servers == other.servers && one.gone == other.gone &&
         one.undiscovered == other.undiscovered;
}

void Plan::AwaitNames(const std::shared_ptr<WaitGroup>& group) const {
  if (timeout == Duration::zero()) return;  // it only looks (BAR-29)
  for (const StoreRequest& each : asked) {
    if (!each.undiscovered.empty()) each.store->impl().AwaitNames(group, reach == Reach::kReplica);
  }
}

std::function<bool()> Plan::Outdated() const {
  std::vector<std::pair<std::shared_ptr<const Store::Impl::Generation>, std::uint64_t>> named;
  for (const StoreRequest& each : asked) named.emplace_back(each.store->impl().shared_generation(), each.generation);
  return [named = std::move(named)] {
    return std::any_of(named.begin(), named.end(), [](const auto& each) { return *each.first != each.second; });
  };
}

std::vector<StoreRequest> Plan::ServersOfNow() const {
  std::vector<StoreRequest> now;
  for (const StoreRequest& each : asked) now.push_back(WithServers(each.store, reach, true));
  return now;
}

WantedWrites Plan::Wanted() const {
  WantedWrites wanted;
  for (const StoreRequest& each : asked) {
    for (const auto& server : each.servers) {
      for (const WriteId& write_id : each.ids) wanted.emplace_back(server, &write_id);
    }
  }
  return wanted;
}

bool Plan::LooksTwice() const {
  std::size_t servers = 0;
  for (const StoreRequest& each : asked) servers += each.servers.size();
  return require_complete && reach == Reach::kRegion && servers > 1;
}

bool Plan::LeavesUnjudged() const {
  if (expired_branches || has_ended || !in_doubt.empty()) return true;
  if (!elsewhere.empty() || !unregistered.empty() || !switched_off.empty()) return true;
  if (!lineage.IsComplete() && !lineage.IsComplete(AskedNames())) return true;
  if (!scope) return false;
  const std::vector<Gap> gaps = scope->gaps();
  return std::any_of(gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.reason == "seal"; });
}

std::vector<std::string> Plan::AskedNames() const {
  std::vector<std::string> asked_names = names ? *names : NamesOf(CurrentRegistry()->All());
  const std::vector<std::string> registered = asked_names;
  for (const std::string& name : lineage.incomplete()) {
    if (IsAsked(registered, name, TwinsOf(name))) asked_names.push_back(name);
  }
  asked_names.emplace_back(kBranches);  // BRANCH-19
  return asked_names;
}

Result<Plan> MakePlan(ScopePtr scope, const Lineage* lineage, const BarrierOptions& options, const Site& site) {
  Plan plan;
  plan.registry_generation = RegistryGeneration();
  plan.settings_generation = SettingsGeneration();
  plan.site = site.ToString();
  const auto now = InForce();
  if (lineage == nullptr && !scope) {
    return Mistake("AP101",
                   "antipode::Barrier() was called outside any scope, so there is no lineage to wait for. Open an "
                   "antipode::Scope, "
                   "carry one to this thread by antipode::Carry, or give it a lineage. (site: " +
                       plan.site + ")");
  }
  if (lineage == nullptr) {  // before the lineage: what ends in between is in doubt once too often, not once too few
    for (auto& each : scope->impl().InDoubt()) plan.in_doubt.insert(std::move(each));
    plan.has_ended = scope->closed();
  }
  plan.lineage = lineage != nullptr ? *lineage : scope->Known();
  plan.scope = std::move(scope);
  const std::shared_ptr<Registry> registry = CurrentRegistry();
  if (registry->All().empty() && now->stores.empty()) {
    return Mistake("AP108",
                   "antipode::Barrier() was called in a process that has registered no store: wrap a client, or "
                   "register the store "
                   "that it should wait for. (site: " +
                       plan.site + ")");
  }
  Events().RequestBegun();
  if (options.stores()) {
    if (options.stores()->empty()) {
      return Mistake("AP112",  // BAR-58
                     "Stores({}) asks for nothing, and would always pass: name stores, or leave Stores() out");
    }
    for (const std::string& name : *options.stores()) {
      const auto needed = registry->Need(name);
      if (!needed.ok()) return needed.error();
    }
    plan.names = options.stores();
    for (auto each = plan.in_doubt.begin(); each != plan.in_doubt.end();) {
      const bool is_asked = std::find(plan.names->begin(), plan.names->end(), each->first) != plan.names->end();
      each = is_asked ? std::next(each) : plan.in_doubt.erase(each);
    }
  }
  plan.reach = options.reach().value_or(Reach::kRegion);
  if (plan.reach == Reach::kSession) {
    return Mistake("AP111",
                   "Reach(kSession) speaks of one connection, which a barrier does not have: read in "
                   "antipode::Reading(lineage), or "
                   "wrap with WaitOnRead(true)");
  }
  plan.require_complete = options.require_complete();
  plan.dry_run = options.dry_run() || now->mode == Mode::kDryRun;
  TakeApart(plan, *registry, *now);
  const Result<Duration> deadline = Deadline(options, plan.scope, plan.asked, plan.site);
  if (!deadline.ok()) return deadline.error();
  plan.timeout = *deadline;
  const Result<void> done = TakePolicies(plan, options, *now);
  if (!done.ok()) return done.error();
  return plan;
}

void WarnVacuous(const Plan& plan) {
  logs::Warn("AP604", "vacuous " + plan.site,
             "a barrier judged nothing: the lineage has writes to " + ShownList(plan.elsewhere) +
                 "; registered in this process: " + Joined(NamesOf(CurrentRegistry()->All()), ", ") +
                 ". If these are one store, give it one name. site=" + plan.site);
}

}  // namespace antipode
