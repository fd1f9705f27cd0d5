#include "engine/judgement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/in_force.h"
#include "engine/branches.h"
#include "model/quote.h"
#include "model/text.h"
#include "store/server.h"

namespace antipode {
namespace {

constexpr char kNoThread[] = "this process can start no thread that asks for them";
constexpr char kGone[] = "is not listed any more, and a connection may still lead there";
// A barrier that was over before this share of its deadline was given up early: timers end a little early, too.
constexpr double kWhole = 0.9;

using Needs = std::vector<const PendingWait*>;

std::string Milliseconds(Duration duration) { return std::to_string(std::llround(Seconds(duration) * 1000)); }

std::string Wanted(const StoreRequest& asked) {
  const WriteId& first = asked.ids.front();
  if (asked.ids.size() == 1 && first.is_position()) {
    return first.ordered()->epoch.substr(0, 4) + "…." + std::to_string(first.ordered()->counter) + " or later";
  }
  return std::to_string(asked.ids.size()) + " writes or later";
}

std::string Missing(const PendingWait& need) {
  const std::string replica = "replica " + need.server->address();
  const std::string down = need.server->impl().Down();
  if (!down.empty()) return replica + " does not answer: " + down;
  if (need.answer && !need.answer->reason.empty()) return replica + ": " + need.answer->reason;
  if (need.is_position) {
    return replica + " is at " + need.server->impl().Position() + ", wanted " + need.epoch.substr(0, 4) + "…." +
           std::to_string(need.counter);
  }
  return replica + " has not got " + need.write_id.Section();
}

// `wanted`: how many writes it was to be asked for.
ServerResult JudgeServer(const Server& server, const Needs& needs, std::size_t wanted, bool looked) {
  const std::string& address = server.address();
  if (std::any_of(needs.begin(), needs.end(), [](const PendingWait* need) { return need->left_out; })) {
    const std::string words = server.impl().Down();
    return {address, Verdict::kUnproven, "does not answer: " + (words.empty() ? "does not answer" : words), true,
            UnprovenKind::kConnection};
  }
  std::optional<Visibility> worst;
  for (const PendingWait* need : needs) {
    if (!need->answer) continue;
    Visibility answer = *need->answer;
    if (answer.verdict == Verdict::kNotYet && answer.unknown_epoch && !looked) {
      answer = Visibility::Unproven("unknown epoch: " + answer.reason, UnprovenKind::kHistory);
    }
    if (answer.verdict == Verdict::kUnproven && (!worst || answer.kind < worst->kind)) worst = std::move(answer);
  }
  if (worst) return {address, Verdict::kUnproven, address + ": " + worst->reason, false, worst->kind};
  const Verdict late = looked ? Verdict::kNotYet : Verdict::kTimedOut;
  for (const PendingWait* need : needs) {
    if (!need->Is(Verdict::kVisible)) return {address, late, Missing(*need), false};
  }
  if (needs.size() < wanted) return {address, late, "replica " + address + " was not asked", false};
  return {address, Verdict::kVisible, {}, false};
}

bool IsOverloaded(const Store& store, const WaitGroup& group) {
  return std::any_of(group.needs.begin(), group.needs.end(), [&](const PendingWait& need) {
    return &need.server->store() == &store && !need.Is(Verdict::kVisible) && (need.overloaded || group.overloaded);
  });
}

StoreResult JudgeStore(const StoreRequest& asked, const WaitGroup& group, Duration waited, bool looked) {
  StoreResult result;
  result.waited = waited;
  Duration late{};
  for (const auto& server : asked.servers) {
    Needs own;
    for (const PendingWait& need : group.needs) {
      if (need.server == server) own.push_back(&need);
    }
    for (const PendingWait* need : own) {
      if (need->seen) late = std::max<Duration>(late, *need->seen - need->since);
    }
    result.servers.push_back(JudgeServer(*server, own, asked.ids.size(), looked));
  }
  for (const std::string& address : asked.gone) {
    result.servers.push_back({address, Verdict::kUnproven, kGone, true});
  }
  if (!asked.undiscovered.empty()) {
    result.verdict = Verdict::kUnproven;
    const bool is_own_fault = group.misses_names();
    result.reason = "its servers are not known: " + (is_own_fault ? kNoThread : asked.undiscovered);
    result.kind = is_own_fault ? UnprovenKind::kOwnFault : UnprovenKind::kDiscovery;
    return result;
  }
  std::vector<const ServerResult*> judged;
  std::vector<std::string> left;
  std::vector<std::string> left_words;
  for (const ServerResult& server : result.servers) {
    if (!server.left_out) {
      judged.push_back(&server);
      continue;
    }
    left.push_back(server.address + " " + server.reason);
    left_words.push_back(server.address + " (" + server.reason + ")");
  }
  if (judged.empty() || (!left.empty() && FailsWithoutReplica(asked))) {
    result.verdict = Verdict::kUnproven;
    result.reason = left.empty() ? "no server is registered" : Joined(left, "; ");
    result.kind = left.empty() ? UnprovenKind::kNotOpened : UnprovenKind::kConnection;
    return result;
  }
  for (const Verdict verdict : {Verdict::kUnproven, Verdict::kTimedOut, Verdict::kNotYet}) {
    std::vector<std::string> reasons;
    std::vector<std::string> there;
    for (const ServerResult* server : judged) {
      if (server->verdict == verdict) {
        reasons.push_back(server->reason);
        if (server->kind && (!result.kind || *server->kind < *result.kind)) result.kind = server->kind;
      }
      if (server->verdict == Verdict::kVisible) there.push_back(server->address);
    }
    if (reasons.empty()) continue;
    result.verdict = verdict;
    result.reason = Joined(reasons, "; ");
    result.overloaded = verdict != Verdict::kUnproven && IsOverloaded(*asked.store, group);
    if (!there.empty()) result.reason += " (" + Joined(there, ", ") + (there.size() == 1 ? " is" : " are") + " there)";
    return result;
  }
  result.verdict = Verdict::kVisible;
  result.reason = std::to_string(judged.size()) + " of " + std::to_string(result.servers.size()) +
                  (result.servers.size() == 1 ? " replica at " : " replicas at ") + Wanted(asked);
  if (!left.empty()) result.reason += "; left out: " + Joined(left_words, ", ");
  result.waited = std::min(late, waited);
  return result;
}

// A longer timeout is advised only where waiting longer could help (BAR-59).
std::string CureOfTimeout(const Plan& plan, const BarrierResult& result, const std::vector<std::string>& names) {
  const auto is_down = [&](const StoreRequest& asked) {
    return std::find(names.begin(), names.end(), asked.store->name()) != names.end() &&
           std::any_of(asked.servers.begin(), asked.servers.end(),
                       [](const auto& server) { return !server->impl().Down().empty(); });
  };
  if (std::any_of(plan.asked.begin(), plan.asked.end(), is_down)) {
    return "See that its server runs and lets this process in: antipode doctor URL.";
  }
  if (Seconds(result.waited()) >= kWhole * Seconds(plan.timeout)) {
    return "Raise Timeout() (it was " + Milliseconds(plan.timeout) + " ms), or read the primary with ReadOrFallback().";
  }
  return "It was given up early, so a longer Timeout() does not help: ReadOrFallback() can read the primary.";
}

// What cures a kind of doubt. Only a history speaks of lost writes (BAR-59).
std::string CureOf(UnprovenKind kind, const std::string& store) {
  switch (kind) {
    case UnprovenKind::kHistory:
      return "The write may be lost. After a restore or failover, check it and run: antipode epoch settle " + store +
             " EPOCH --position N --at URL";
    case UnprovenKind::kRight:
      return "Give the login of " + store + " the right, as an administrator: antipode init prints how.";
    case UnprovenKind::kConnection:
      return "See that a server of " + store + " runs and lets this process in: antipode doctor URL.";
    case UnprovenKind::kNotOpened:
      return "No server of " + store + " is known yet: wrap its client, or name its servers with Replicas().";
    case UnprovenKind::kMisspelt:
      return "A store has one name in every service.";
    case UnprovenKind::kDiscovery:
      return "What lists the servers of " + store + " (ReplicasFrom(), a name service) must name one.";
    case UnprovenKind::kUnfit:
      return "Change that setting or topology of " + store + "; antipode doctor URL says how.";
    case UnprovenKind::kOwnFault:
      return "This process is in trouble: look at its descriptors, threads and memory, and at its log.";
    case UnprovenKind::kOther:
      break;
  }
  return "antipode doctor URL says what is unproven at a server, and what cures it.";
}

// What is said of stores that are unproven, and the lines with what cures that.
struct UnprovenReport {
  std::string words;
  std::string cures;
};

UnprovenReport TellUnproven(const BarrierResult& result, const std::vector<std::string>& names) {
  std::vector<std::string> told;
  std::map<UnprovenKind, std::string> first;
  for (const std::string& name : names) {
    const StoreResult& store = result.store(name);
    told.push_back(name + ": " + store.reason);
    if (name != kBranches) first.emplace(store.kind.value_or(UnprovenKind::kOther), name);
  }
  std::string cures;
  for (const auto& [kind, name] : first) cures += "\n  " + CureOf(kind, name);
  return {Joined(told, "; "), cures};
}

// Of stores that are late, and of unproven ones that count as such (`as_timeout`).
Error TimeoutError(const Plan& plan, const BarrierResult& result, const std::vector<std::string>& late,
                   const std::vector<std::string>& lost) {
  const std::string region = InForce()->region;
  const UnprovenReport unproven = TellUnproven(result, lost);
  std::vector<std::string> told;
  if (!lost.empty()) told.push_back(unproven.words);
  for (const std::string& name : late) {
    told.push_back(name + " is not visible" + (region.empty() ? "" : " in region " + region) + " after " +
                   Milliseconds(result.waited()) + " ms: " + result.store(name).reason);
  }
  return {ErrorCode::kTimedOut, result.store((lost.empty() ? late : lost).front()).message_code(),
          Joined(told, "; ") + "." + unproven.cures + "\n  " + CureOfTimeout(plan, result, late)};
}

}  // namespace

Error UnprovenError(const BarrierResult& result, const std::vector<std::string>& names) {
  const UnprovenReport told = TellUnproven(result, names);
  return {ErrorCode::kUnproven, result.store(names.front()).message_code(), told.words + "." + told.cures};
}

namespace {

// What this policy makes of an error; nothing where it lets the application go on.
std::optional<Error> Applied(Policy policy, const Error& error) {
  if (policy == Policy::kRaise) return error;
  if (policy != Policy::kRedeliver) return std::nullopt;
  return Error{ErrorCode::kRedeliver, error.message_code, "give the message back: " + error.Words(), error.result};
}

std::optional<Error> EnforceSatisfied(const Plan& plan, const BarrierResult& result) {
  std::vector<std::string> late;
  std::vector<std::string> lost;
  for (const auto& [name, store] : result.stores()) {
    const std::string& of = name;
    const bool recorded = std::any_of(plan.recorded.begin(), plan.recorded.end(),
                                      [&](const StoreRequest& asked) { return asked.store->name() == of; });
    if (store.verdict == Verdict::kUnproven) lost.push_back(name);
    if (!recorded && (store.verdict == Verdict::kTimedOut || store.verdict == Verdict::kNotYet)) late.push_back(name);
  }
  if (!lost.empty() && plan.on_unproven != Policy::kAsTimeout) {
    auto error = Applied(plan.on_unproven, UnprovenError(result, lost));
    if (error) return error;
    lost.clear();
  }
  if (!late.empty()) return Applied(plan.on_timeout, TimeoutError(plan, result, late, lost));
  if (!lost.empty()) return Applied(plan.on_timeout, UnprovenError(result, lost));
  return std::nullopt;
}

}  // namespace

bool FailsWithoutReplica(const StoreRequest& asked) {
  return asked.store->options()->on_replica_out.value_or(InForce()->on_replica_out) == OnReplicaOut::kFail;
}

StoreResult JudgeAlone(const Server& server, const WaitGroup& group, Duration waited) {
  Needs needs;
  for (const PendingWait& need : group.needs) needs.push_back(&need);
  ServerResult own = JudgeServer(server, needs, needs.size(), false);
  const bool overloaded = own.verdict == Verdict::kTimedOut && IsOverloaded(server.store(), group);
  return {own.verdict, own.reason, waited, {own}, own.kind, overloaded};
}

StoreResults JudgeStores(const Plan& plan, const WaitGroup& group, Duration waited, bool looked) {
  StoreResults verdicts;
  for (const StoreRequest& asked : plan.asked) {
    verdicts.emplace(asked.store->name(), JudgeStore(asked, group, waited, looked));
  }
  for (const StoreRequest& asked : plan.recorded) {
    verdicts.emplace(asked.store->name(),
                     StoreResult{Verdict::kNotYet, "in dry-run: recorded, not waited for", {}, {}});
  }
  for (const auto& [name, answer] : plan.unregistered) {
    verdicts.emplace(name, StoreResult{Verdict::kUnproven, answer.reason, {}, {}, answer.kind});
  }
  for (const std::string& name : plan.elsewhere) {
    verdicts.emplace(name, StoreResult{Verdict::kElsewhere, "not registered in this process", {}, {}});
  }
  return verdicts;
}

std::optional<Error> Enforce(const Plan& plan, const BarrierResult& result) {
  if (!result.satisfied()) {
    auto error = EnforceSatisfied(plan, result);
    if (error) return error;
  }
  if (result.vacuous() && plan.on_vacuous == Policy::kRaise) {
    return Error{ErrorCode::kIncomplete, "AP604",
                 "a barrier judged nothing: " + ShownList(plan.elsewhere) + " not registered in this process"};
  }
  if (plan.require_complete && !result.complete()) {
    return Error{ErrorCode::kIncomplete, "AP116", "require_complete: something was left unjudged\n" + result.Explain()};
  }
  return std::nullopt;
}

}  // namespace antipode
