/// \file
/// Whether a server answers, and for how long it has not (spec BAR-26).
#ifndef ANTIPODE_ENGINE_REACHABILITY_H_
#define ANTIPODE_ENGINE_REACHABILITY_H_

#include <algorithm>
#include <optional>
#include <string>

#include "engine/in_force.h"
#include "engine/time.h"

namespace antipode {

/// Pauses between questions to a server that does not answer: at first, and at most.
inline constexpr Duration kFirstRetry = std::chrono::milliseconds(50);
inline constexpr Duration kLongestRetry = std::chrono::milliseconds(500);

class Reachability {
 public:
  void Failed(TimePoint asked_at, TimePoint now, std::string words) {
    if (!down_since_) down_since_ = asked_at;
    failed_at_ = now;
    words_ = std::move(words);
  }

  void Answered() noexcept { down_since_.reset(); }

  bool down() const noexcept { return down_since_.has_value(); }
  TimePoint failed_at() const noexcept { return failed_at_; }

  /// The words of the last failure while the server does not answer, else empty.
  std::string Down() const { return down_since_ ? words_ : std::string(); }

  /// Whether it has not answered for `replica_out_after`, as far as is known lately.
  bool IsOut(TimePoint now) const {
    if (!down_since_) return false;
    const Duration out_after = InForce()->replica_out_after;
    if (now - *down_since_ < out_after) return false;
    const Duration ask_timeout = std::min<Duration>(std::chrono::seconds(1), out_after / 2);
    return now - failed_at_ < kLongestRetry + 2 * ask_timeout;
  }

 private:
  std::optional<TimePoint> down_since_;
  TimePoint failed_at_{};
  std::string words_;
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_REACHABILITY_H_
