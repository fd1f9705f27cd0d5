/// \file
/// The clock of all waiting.
#ifndef ANTIPODE_SRC_BASE_TIME_H_
#define ANTIPODE_SRC_BASE_TIME_H_

#include <chrono>
#include <type_traits>

#include "antipode/settings.h"

namespace antipode {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
static_assert(std::is_same_v<Clock::duration, Duration>);

/// No barrier waits longer (BAR-58).
inline constexpr Duration kLongestTimeout = std::chrono::hours(1);

/// Long ago: before whatever has happened.
inline constexpr TimePoint kNever = TimePoint::min();

inline double Seconds(Duration duration) noexcept { return std::chrono::duration<double>(duration).count(); }

/// The time between two moments; the longest there is where the earlier one is `kNever`.
inline Duration Since(TimePoint earlier, TimePoint now) noexcept {
  return earlier == kNever ? Duration::max() : now - earlier;
}

}  // namespace antipode

#endif  // ANTIPODE_SRC_BASE_TIME_H_
