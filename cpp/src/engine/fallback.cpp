#include "antipode/fallback.h"

#include <mutex>
#include <utility>

#include "engine/in_force.h"
#include "engine/measures.h"
#include "fork.h"

namespace antipode::detail {
namespace {

struct Running {
  Running() {
    OnForkInChild([this] { count = 0; });  // those that run are the parent's
  }
  std::mutex mutex;
  std::int64_t count = 0;
};

Running& TheRunning() { return ForkSafe<Running, LockOrder::kInner>(); }

}  // namespace

FallbackPlace::FallbackPlace() {
  const std::int64_t most = InForce()->max_fallbacks;
  {
    const std::lock_guard<std::mutex> lock(TheRunning().mutex);
    taken_ = TheRunning().count < most;
    TheRunning().count += taken_ ? 1 : 0;
  }
  telemetry::Fallback(taken_ ? "run" : "refused");
}

FallbackPlace::~FallbackPlace() {
  if (!taken_) return;
  const std::lock_guard<std::mutex> lock(TheRunning().mutex);
  --TheRunning().count;
}

FallbackReading::FallbackReading(Lineage after)
    : outer_(CurrentReading()), reading_(ReadingOptions{std::move(after), false}) {}

FallbackReading::~FallbackReading() {
  if (outer_) outer_->Saw({}, reading_.lineage());
}

std::optional<Error> FallbackUnproven(const BarrierResult& result) {
  for (const auto& [name, store] : result.stores()) {
    if (store.verdict != Verdict::kUnproven) continue;
    return Error{ErrorCode::kUnproven, "no fallback, for " + name + " may have lost the write there, too\n" + result.Explain(),
                 std::make_shared<const BarrierResult>(result)};
  }
  return std::nullopt;
}

Error FallbackRefused(const BarrierResult& result) {
  return {ErrorCode::kTimedOut,
          "no fallback: " + std::to_string(InForce()->max_fallbacks) + " run already\n" + result.Explain(),
          std::make_shared<const BarrierResult>(result)};
}

}  // namespace antipode::detail
