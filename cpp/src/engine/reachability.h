/// \file
/// Whether a server answers, and for how long it has not (spec BAR-26).
#ifndef ANTIPODE_ENGINE_REACHABILITY_H_
#define ANTIPODE_ENGINE_REACHABILITY_H_

#include <algorithm>
#include <optional>
#include <string>

#include "base/in_force.h"
#include "base/time.h"

namespace antipode {

/// Pauses between questions to a server that does not answer: at first, and at most.
inline constexpr Duration kFirstRetry = std::chrono::milliseconds(50);
inline constexpr Duration kLongestRetry = std::chrono::milliseconds(500);

/// How long one question may take.
inline Duration AskTimeout() {
  return std::min<Duration>(std::chrono::seconds(1), Duration(InForce()->replica_out_after) / 2);
}

class Reachability {
 public:
  /// How long the process itself stood still is no silence: one question counts as no more than it may take (BAR-61).
  void Failed(TimePoint asked_at, TimePoint now, std::string words) {
    if (!down_since_ || !IsAsked(now)) down_since_ = std::max(asked_at, now - AskTimeout());
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
    return down_since_ && now - *down_since_ >= InForce()->replica_out_after && IsAsked(now);
  }

 private:
  // Whether its last silence was not long ago: somebody has asked it ever since.
  bool IsAsked(TimePoint now) const { return now - failed_at_ < kLongestRetry + 2 * AskTimeout(); }

  std::optional<TimePoint> down_since_;
  TimePoint failed_at_{};
  std::string words_;
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_REACHABILITY_H_
