/// \file
/// `ReadOrFallback`: reads here after a barrier, or elsewhere where it does not pass in time (spec BAR-46).
#ifndef ANTIPODE_FALLBACK_H_
#define ANTIPODE_FALLBACK_H_

#include <type_traits>
#include <utility>

#include "antipode/barrier.h"
#include "antipode/result.h"

namespace antipode {
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

Error FallbackRefused(const BarrierResult& result);

}  // namespace detail

/// Reads here after a barrier, or elsewhere (the primary) where the barrier does not pass in time.
///
/// At most `max_fallbacks` fallbacks run at once in a process, so that a lagging replica does not become an overloaded
/// primary; past that it fails as a late barrier does (kTimedOut). Takes the options of a barrier; of the policies none. A
/// barrier that was a mistake is its error.
template <class Read, class Fallback>
auto ReadOrFallback(Read&& read, Fallback&& fallback, BarrierOptions options = {}, Site site = Site())
    -> Result<std::invoke_result_t<Read>> {
  const BarrierResult result = Barrier(options.OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed), site);
  if (result.error() != nullptr) return *result.error();
  if (result.satisfied()) return std::forward<Read>(read)();
  const detail::FallbackPlace place;
  if (!place.taken()) return detail::FallbackRefused(result);
  return std::forward<Fallback>(fallback)();
}

}  // namespace antipode

#endif  // ANTIPODE_FALLBACK_H_
