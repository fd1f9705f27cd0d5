#include "antipode/wait_on_read.h"

#include <algorithm>
#include <cmath>

#include "antipode/store.h"
#include "engine/held_result.h"
#include "engine/in_force.h"
#include "engine/measures.h"
#include "engine/time.h"
#include "engine/waiting.h"

namespace antipode {

Result<void> WaitFirst(const std::shared_ptr<Server>& server, Duration timeout,
                       const std::shared_ptr<ReadingBlock>& reading, const ScopePtr& scope, bool waits) {
  Lineage lineage;
  if (reading && reading->after()) {
    lineage = *reading->after();
  } else if (waits && scope) {
    lineage = scope->Known();
  } else {
    return {};
  }
  Store& store = server->store();
  const std::vector<WriteId> ids = lineage.OfStore(store.name());
  if (ids.empty() || store.mode() != Mode::kEnforce) return {};
  const TimePoint began = Clock::now();
  const auto deadline = scope ? scope->deadline() : std::nullopt;
  if (deadline) timeout = std::min<Duration>(timeout, std::max<Duration>(*deadline - began, Duration::zero()));
  const Verdict verdict = WaitForServer(server, Lineage(ids), timeout);
  if (verdict == Verdict::kVisible) return {};
  const std::string words = store.name() + " at " + server->address() + ": " + std::string(ToString(verdict)) +
                            ". The read waited for it " + std::to_string(std::llround(Seconds(timeout) * 1000)) + " ms";
  return WaitedInVain(store.name(), words, Clock::now() - began, scope, verdict == Verdict::kUnproven);
}

Result<void> WaitedInVain(const std::string& store, const std::string& words, Duration waited, const ScopePtr& scope,
                          bool unproven) {
  const auto now = InForce();
  const bool by_unproven = unproven && now->on_unproven != Policy::kAsTimeout;
  const Policy policy = by_unproven ? now->on_unproven : now->on_timeout;
  if (policy == Policy::kProceed) return {};
  const std::string told = words + " (wait on read)";
  auto held = std::make_shared<BarrierResult::Held>();
  held->waited = waited;
  held->left_unjudged = true;
  const StoreResult judged{unproven ? Verdict::kUnproven : Verdict::kTimedOut, told, waited, {}};
  held->stores.emplace(store, judged);
  auto result = std::make_shared<const BarrierResult>(std::move(held));
  if (policy == Policy::kRedeliver && scope && scope->delivery()) {
    return Error{ErrorCode::kRedeliver, judged.message_code(), "give the message back: " + told, std::move(result)};
  }
  return Error{unproven ? ErrorCode::kUnproven : ErrorCode::kTimedOut, judged.message_code(), told, std::move(result)};
}

}  // namespace antipode
