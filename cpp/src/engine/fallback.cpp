#include "antipode/fallback.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/in_force.h"
#include "base/observers.h"
#include "engine/branches.h"
#include "engine/judgement.h"

namespace antipode::detail {
namespace {

struct RunningRead {
  RunningRead() {
    OnForkInChild([this] { count = 0; });  // those that run are the parent's
  }
  std::mutex mutex;
  std::int64_t count = 0;
};

RunningRead& TheRunning() { return ForkSafe<RunningRead, LockOrder::kInner>(); }

// What each read of the fallback first waits for: what was asked about, and what the block around it waits for anyway.
Lineage WaitedFor(const Lineage& judged, const std::optional<std::vector<std::string>>& stores,
                  const ReadingBlock* outer) {
  Lineage after = judged;
  if (stores) {
    std::vector<WriteId> ids;
    for (const std::string& store : *stores) {
      const std::vector<WriteId> of_store = judged.OfStore(store);
      ids.insert(ids.end(), of_store.begin(), of_store.end());
    }
    after = Lineage(ids);
  }
  return outer != nullptr && outer->after() ? after | *outer->after() : after;
}

}  // namespace

FallbackPlace::FallbackPlace() {
  const std::int64_t most = InForce()->max_fallbacks;
  {
    const std::lock_guard<std::mutex> lock(TheRunning().mutex);
    taken_ = TheRunning().count < most;
    TheRunning().count += taken_ ? 1 : 0;
  }
  Events().Fallback(taken_ ? "run" : "refused");
}

FallbackPlace::~FallbackPlace() {
  if (!taken_) return;
  const std::lock_guard<std::mutex> lock(TheRunning().mutex);
  --TheRunning().count;
}

FallbackReading::FallbackReading(const Lineage& judged, const std::optional<std::vector<std::string>>& stores)
    : outer_(CurrentReading()), reading_(ReadingOptions{WaitedFor(judged, stores, outer_.get()), false}) {}

FallbackReading::~FallbackReading() {
  if (outer_) outer_->Saw({}, reading_.lineage());
}

std::optional<Error> FallbackUnproven(const BarrierResult& result, bool proceeds) {
  const auto proved = [&result] { return std::make_shared<const BarrierResult>(result); };
  std::vector<std::string> unproven;
  for (const auto& [name, store] : result.stores()) {
    if (name == kBranches) {
      return Error{ErrorCode::kTimedOut, "AP210",
                   "no fallback: what open branches write is known nowhere\n" + result.Explain(), proved()};
    }
    if (store.verdict == Verdict::kUnproven) unproven.push_back(name);
  }
  if (unproven.empty() || proceeds) return std::nullopt;
  Error error = UnprovenError(result, unproven);
  error.result = proved();
  return error;
}

Error FallbackRefused(const BarrierResult& result) {
  return {ErrorCode::kTimedOut, "AP114",
          "no fallback: " + std::to_string(InForce()->max_fallbacks) + " run already\n" + result.Explain(),
          std::make_shared<const BarrierResult>(result)};
}

}  // namespace antipode::detail
