#include "engine/judgement.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/branches.h"
#include "engine/in_force.h"
#include "text.h"

namespace antipode {
namespace {

using Needs = std::vector<const Need*>;

std::string Milliseconds(Duration duration) { return std::to_string(std::llround(Seconds(duration) * 1000)); }

std::string Wanted(const Asked& asked) {
  const WriteId& first = asked.ids.front();
  if (asked.ids.size() == 1 && first.is_position()) {
    return first.ordered()->epoch.substr(0, 4) + "…." + std::to_string(first.ordered()->counter) + " or later";
  }
  return std::to_string(asked.ids.size()) + " writes or later";
}

std::string Missing(const Need& need) {
  const std::string replica = "replica " + need.server->address();
  const std::string down = need.server->Down();
  if (!down.empty()) return replica + " does not answer: " + down;
  if (need.answer && !need.answer->reason.empty()) return replica + ": " + need.answer->reason;
  if (need.is_position) {
    return replica + " is at " + need.server->Position() + ", wanted " + need.epoch.substr(0, 4) + "…." +
           std::to_string(need.counter);
  }
  return replica + " has not got " + need.write_id.Section();
}

ServerResult JudgeServer(const Server& server, const Needs& needs, bool looked) {
  const std::string& address = server.address();
  if (std::any_of(needs.begin(), needs.end(), [](const Need* need) { return need->left_out; })) {
    const std::string words = server.Down();
    return {address, Verdict::kUnproven, "does not answer: " + (words.empty() ? "does not answer" : words), true};
  }
  for (const Need* need : needs) {
    if (need->Is(Verdict::kUnproven)) return {address, Verdict::kUnproven, address + ": " + need->answer->reason, false};
  }
  for (const Need* need : needs) {
    if (need->Is(Verdict::kVisible)) continue;
    if (need->answer && need->answer->unknown_epoch && !looked) {
      return {address, Verdict::kUnproven, address + ": unknown epoch: " + need->answer->reason, false};
    }
    return {address, looked ? Verdict::kNotYet : Verdict::kTimedOut, Missing(*need), false};
  }
  return {address, Verdict::kVisible, {}, false};
}

StoreResult JudgeStore(const Asked& asked, const Group& group, Duration waited, bool looked) {
  StoreResult result;
  result.waited = waited;
  Duration late{};
  for (const auto& server : asked.servers) {
    Needs own;
    for (const Need& need : group.needs) {
      if (need.server == server) own.push_back(&need);
    }
    for (const Need* need : own) {
      if (need->seen) late = std::max<Duration>(late, *need->seen - need->since);
    }
    result.servers.push_back(JudgeServer(*server, own, looked));
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
    return result;
  }
  for (const Verdict verdict : {Verdict::kUnproven, Verdict::kTimedOut, Verdict::kNotYet}) {
    std::vector<std::string> reasons;
    std::vector<std::string> there;
    for (const ServerResult* server : judged) {
      if (server->verdict == verdict) reasons.push_back(server->reason);
      if (server->verdict == Verdict::kVisible) there.push_back(server->address);
    }
    if (reasons.empty()) continue;
    result.verdict = verdict;
    result.reason = Joined(reasons, "; ");
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

std::string TimeoutWords(const Plan& plan, const BarrierResult& result, const std::vector<std::string>& names) {
  const std::string region = InForce()->region;
  std::vector<std::string> told;
  for (const std::string& name : names) {
    told.push_back(name + " is not visible" + (region.empty() ? "" : " in region " + region) + " after " +
                   Milliseconds(result.waited()) + " ms: " + result.store(name).reason);
  }
  return Joined(told, "; ") + ".\n  Raise Timeout() (it was " + Milliseconds(plan.timeout) +
         " ms), or read the primary with ReadOrFallback().";
}

std::string UnprovenWords(const BarrierResult& result, const std::vector<std::string>& names) {
  std::vector<std::string> told;
  for (const std::string& name : names) told.push_back(name + ": " + result.store(name).reason);
  return Joined(told, "; ") +
         ": the write may be lost.\n  After a restore or failover, check it and run: antipode epoch settle " +
         names.front() + " EPOCH --at URL";
}

// What this policy makes of an error; nothing where it lets the application go on.
std::optional<Error> Applied(Policy policy, Error error) {
  if (policy == Policy::kRaise) return error;
  if (policy != Policy::kRedeliver) return std::nullopt;
  error.message = "give the message back: " + error.message;
  error.code = ErrorCode::kRedeliver;
  return error;
}

std::optional<Error> EnforceSatisfied(const Plan& plan, const BarrierResult& result) {
  std::vector<std::string> late;
  std::vector<std::string> lost;
  for (const auto& [name, store] : result.stores()) {
    const std::string& of = name;
    const bool recorded = std::any_of(plan.recorded.begin(), plan.recorded.end(),
                                      [&](const Asked& asked) { return asked.store->name() == of; });
    if (store.verdict == Verdict::kUnproven) lost.push_back(name);
    if (!recorded && (store.verdict == Verdict::kTimedOut || store.verdict == Verdict::kNotYet)) late.push_back(name);
  }
  if (!lost.empty() && plan.on_unproven != Policy::kAsTimeout) {
    auto error = Applied(plan.on_unproven, {ErrorCode::kUnproven, UnprovenWords(result, lost), nullptr});
    if (error) return error;
  }
  if (!late.empty()) return Applied(plan.on_timeout, {ErrorCode::kTimedOut, TimeoutWords(plan, result, late), nullptr});
  if (!lost.empty() && plan.on_unproven == Policy::kAsTimeout) {
    return Applied(plan.on_timeout, {ErrorCode::kUnproven, UnprovenWords(result, lost), nullptr});
  }
  return std::nullopt;
}

}  // namespace

bool FailsWithoutReplica(const Asked& asked) {
  return asked.store->options()->on_replica_out.value_or(InForce()->on_replica_out) == OnReplicaOut::kFail;
}

StoreResults JudgeStores(const Plan& plan, const Group& group, Duration waited, bool looked) {
  StoreResults verdicts;
  for (const Asked& asked : plan.asked) {
    verdicts.emplace(asked.store->name(), JudgeStore(asked, group, waited, looked));
  }
  for (const Asked& asked : plan.recorded) {
    verdicts.emplace(asked.store->name(),
                     StoreResult{Verdict::kNotYet, "in dry-run: recorded, not waited for", {}, {}});
  }
  for (const std::string& name : plan.expected) {
    const char* reason = name == kBranches ? kOpenBranches : "listed in ANTIPODE_STORES, and not registered yet";
    verdicts.emplace(name, StoreResult{Verdict::kUnproven, reason, {}, {}});
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
    return Error{ErrorCode::kIncomplete,
                 "a barrier judged nothing: " + Joined(plan.elsewhere, ", ") + " not registered in this process", nullptr};
  }
  if (plan.require_complete && !result.complete()) {
    return Error{ErrorCode::kIncomplete, "require_complete: something was left unjudged\n" + result.Explain(), nullptr};
  }
  return std::nullopt;
}

}  // namespace antipode
