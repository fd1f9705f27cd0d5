#include "antipode/shim/wait_on_read.h"

#include <algorithm>
#include <cmath>

#include "antipode/store.h"
#include "base/in_force.h"
#include "base/time.h"
#include "engine/judgement.h"
#include "engine/waiting.h"
#include "model/held_result.h"
#include "store/registry.h"

namespace antipode {
namespace {

Result<void> Fail(const std::string& store, StoreResult judged, const ScopePtr& scope, MessageCode code) {
  const auto now = InForce();
  const bool is_unproven = judged.verdict == Verdict::kUnproven;
  const bool by_unproven = is_unproven && now->on_unproven != Policy::kAsTimeout;
  const Policy policy = by_unproven ? now->on_unproven : now->on_timeout;
  if (policy == Policy::kProceed) return {};
  judged.reason += " (wait on read)";
  const std::string told = judged.reason;
  auto held = std::make_shared<BarrierResult::Held>();
  held->waited = judged.waited;
  held->left_unjudged = true;
  held->stores.emplace(store, std::move(judged));
  auto result = std::make_shared<const BarrierResult>(std::move(held));
  if (policy == Policy::kRedeliver && scope && scope->delivery()) {
    return Error{ErrorCode::kRedeliver, code, "give the message back: " + told, std::move(result)};
  }
  return Error{is_unproven ? ErrorCode::kUnproven : ErrorCode::kTimedOut, code, told, std::move(result)};
}

}  // namespace

Result<std::vector<WriteId>> Required(const Store& store, const std::shared_ptr<ReadingBlock>& reading,
                                      const ScopePtr& scope, bool waits) {
  const bool is_after = reading && reading->after();
  if ((!is_after && !(waits && scope)) || store.mode() != Mode::kEnforce) return std::vector<WriteId>();
  const Lineage lineage = is_after ? *reading->after() : scope->Known();
  if (auto misspelt = MisspeltIn(lineage, store.name())) {
    const std::string words = store.name() + ": " + misspelt->reason + ". The read waited for nothing";
    const auto allowed =
        WaitedInVain(store.name(), {Verdict::kUnproven, words, {}, {}, UnprovenKind::kMisspelt}, scope);
    if (!allowed.ok()) return allowed.error();
  }
  return lineage.OfStore(store.name());
}

Result<bool> WaitFirst(const std::shared_ptr<Server>& server, Duration timeout,
                       const std::shared_ptr<ReadingBlock>& reading, const ScopePtr& scope, bool waits) {
  const Store& store = server->store();
  const auto required = Required(store, reading, scope, waits);
  if (!required.ok()) return required.error();
  if (required->empty()) return true;
  const TimePoint began = Clock::now();
  const auto deadline = scope ? scope->deadline() : std::nullopt;
  if (deadline) timeout = std::min<Duration>(timeout, std::max<Duration>(*deadline - began, Duration::zero()));
  StoreResult judged = WaitForServer(server, Lineage(*required), timeout);
  if (judged.verdict == Verdict::kVisible) return true;
  judged.reason = store.name() + " at " + server->address() + ": " + std::string(ToString(judged.verdict)) + " (" +
                  judged.reason + "). The read waited for it " + std::to_string(std::llround(Seconds(timeout) * 1000)) +
                  " ms";
  judged.waited = Clock::now() - began;
  const Result<void> allowed = WaitedInVain(store.name(), std::move(judged), scope);
  if (!allowed.ok()) return allowed.error();
  return false;
}

Result<void> WaitedInVain(const std::string& store, StoreResult judged, const ScopePtr& scope) {
  const MessageCode code = judged.message_code();
  return Fail(store, std::move(judged), scope, code);
}

Result<void> ReadsThePast(const std::string& store, const std::string& words, const ScopePtr& scope) {
  const std::string told = store + ": " + words + ", and waiting makes it no newer";
  return Fail(store, {Verdict::kUnproven, told, {}, {}, UnprovenKind::kOther}, scope, "AP514");
}

StoreResult WaitForServer(const std::shared_ptr<Server>& server, const Lineage& lineage, Duration timeout) {
  const TimePoint began = Clock::now();
  const std::vector<WriteId> ids = lineage.OfStore(server->store().name());
  WantedWrites wanted;
  for (const WriteId& write_id : ids) wanted.emplace_back(server, &write_id);
  const auto group = std::make_shared<Group>(timeout);
  WaitFor(*group, wanted);
  return JudgeAlone(*server, *group, Clock::now() - began);
}

}  // namespace antipode
