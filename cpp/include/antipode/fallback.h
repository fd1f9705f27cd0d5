/// \file
/// `ReadOrFallback`: reads here after a barrier, or elsewhere where it does not pass in time (spec BAR-46).
#ifndef ANTIPODE_FALLBACK_H_
#define ANTIPODE_FALLBACK_H_

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/reading.h"
#include "antipode/result.h"
#include "antipode/scope.h"

namespace antipode ANTIPODE_EXPORT {
namespace detail {

/// One of the places of fallbacks that run at once.
class FallbackPlace {
 public:
  FallbackPlace();
  FallbackPlace(const FallbackPlace&) = delete;
  FallbackPlace& operator=(const FallbackPlace&) = delete;
  ~FallbackPlace();
  bool taken() const noexcept { return taken_; }

 private:
  bool taken_;
};

/// As `Reading(after)` of what the barrier was asked about; an outer block of reads is waited for and told, too.
class FallbackReading {
 public:
  /// `judged`: the lineage of the barrier. `stores`: those that it named; nothing where it asked for all.
  FallbackReading(const Lineage& judged, const std::optional<std::vector<std::string>>& stores);
  FallbackReading(const FallbackReading&) = delete;
  FallbackReading& operator=(const FallbackReading&) = delete;
  ~FallbackReading();

 private:
  const std::shared_ptr<ReadingBlock> outer_;
  Reading reading_;
};

Error FallbackRefused(const BarrierResult& result);

/// Why the second read is not run: a branch is open, whose writes nobody knows, or a store is unproven and the caller
/// does not go on for that (`proceeds`); nothing where it is run.
std::optional<Error> FallbackUnproven(const BarrierResult& result, bool proceeds);

}  // namespace detail

/// Reads here after a barrier, or elsewhere (the primary) where the barrier does not pass in time.
///
/// The place that it falls back to is judged, too: the second read runs as in `Reading` with `after`, so that each read
/// by a wrapped client first proves that the writes are there, and fails like any that waits in vain; what it asks of a
/// plain client nobody judges. Where a store is unproven it fails (kUnproven) without the second read, unless the
/// options say `OnUnproven(kProceed)`.
///
/// At most `max_fallbacks` fallbacks run at once in a process, so that a lagging replica does not become an overloaded
/// primary; past that it fails as a late barrier does (kTimedOut). Takes the options of a barrier; of the policies that
/// for unproven alone. A barrier that was a mistake is its error.
template <class Read, class Fallback>
auto ReadOrFallback(Read&& read, Fallback&& fallback, BarrierOptions options = {}, Site site = Site())
    -> Result<std::invoke_result_t<Read>> {
  const bool proceeds = options.on_unproven() == Policy::kProceed;
  const ScopePtr scope = CurrentScope();
  const Lineage judged = scope ? scope->Known() : Lineage();
  const BarrierResult result = Barrier(options.OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed), site);
  if (result.error() != nullptr) return *result.error();
  if (result.satisfied()) return std::forward<Read>(read)();
  if (auto unproven = detail::FallbackUnproven(result, proceeds)) return *std::move(unproven);
  const detail::FallbackPlace place;
  if (!place.taken()) return detail::FallbackRefused(result);
  const detail::FallbackReading reading(judged, options.stores());
  return std::forward<Fallback>(fallback)();
}

}  // namespace antipode

#endif  // ANTIPODE_FALLBACK_H_
