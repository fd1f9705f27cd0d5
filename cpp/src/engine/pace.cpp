#include "engine/pace.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace antipode {
namespace {

using std::chrono::milliseconds;

constexpr int kSafetyNet = 10;  // the poll interval doubles up to so many times the shortest
// By so much it grows where nobody waits: when a write was seen is known to within a quarter, or the longest interval.
constexpr double kUnhurried = 1.25;
constexpr Duration kMemory = milliseconds(250);  // what is older hardly counts
constexpr Duration kTwin = milliseconds(2);      // of two such answers the second shows no standstill
constexpr double kLater = 0.08;  // by this share of the time ahead a question comes behind its prediction
constexpr int kFew = 4;          // so many pushes can be counted: of more the time tells better

double Jitter() {
  thread_local std::minstd_rand chance{std::random_device{}()};
  return std::uniform_real_distribution<double>(0.9, 1.1)(chance);
}

Duration Times(Duration duration, double factor) noexcept {
  return Duration(static_cast<Duration::rep>(static_cast<double>(duration.count()) * factor));
}

}  // namespace

void Growth::Note(const std::string& instance, const std::string& epoch, TimePoint asked_at, std::uint64_t counter) {
  if (instance != instance_ || epoch != epoch_ || counter < counter_) {
    instance_ = instance;
    epoch_ = epoch;
    is_moving_ = false;
    grown_ = spent_ = pushes_ = 0;
  } else {
    const Duration ticks = asked_at - asked_at_;
    if (counter == counter_ && ticks < kTwin) return;
    is_moving_ = counter > counter_ && ticks > Duration::zero();
    const double spent = static_cast<double>(ticks.count());
    const double kept = std::exp(-spent / static_cast<double>(kMemory.count()));
    grown_ = grown_ * kept + static_cast<double>(counter - counter_);
    spent_ = spent_ * kept + spent;
    pushes_ = pushes_ * kept + pushed_.load(std::memory_order_relaxed);
  }
  asked_at_ = asked_at;
  counter_ = counter;
  pushed_.store(0, std::memory_order_relaxed);  // what is lost to another thread makes a prediction a little worse
}

std::optional<TimePoint> Growth::ExpectedAt(const std::string& instance, const std::string& epoch,
                                            std::uint64_t counter) const {
  if (!is_moving_ || instance != instance_ || epoch != epoch_) return std::nullopt;
  const double ahead = Way(counter) * spent_ / grown_ * (1 + kLater);
  const double most = std::min(2 * spent_, static_cast<double>(kCap.count()));
  return asked_at_ + Duration(static_cast<Duration::rep>(std::min(ahead, most)));
}

bool Growth::IsPushedTo(std::uint64_t counter) const noexcept {
  if (spent_ >= static_cast<double>(kCap.count()) * pushes_) return true;
  return Way(counter) * pushes_ / grown_ <= std::min(pushed_.load(std::memory_order_relaxed), kFew);
}

double Growth::Way(std::uint64_t counter) const noexcept {
  return counter > counter_ ? static_cast<double>(counter - counter_) : 0;
}

TimePoint Pace::Due(Duration shortest, std::optional<TimePoint> expected, bool is_pushed_to) const {
  const TimePoint soonest = paced_at_ + shortest;
  const TimePoint pushed = paced_at_ + std::min(shortest, kCap);  // who has a push may poll seldom
  if (!expected) {
    return has_news_ ? pushed : std::max(asked_at_ + Times(std::max(interval_, shortest), Jitter()), soonest);
  }
  return has_news_ && is_pushed_to ? pushed : std::max(*expected, soonest);
}

void Pace::Begin(TimePoint now, bool is_paced) noexcept {
  asked_at_ = now;
  has_news_ = false;
  if (is_paced) paced_at_ = now;
}

void Pace::End(Duration shortest, bool is_down, bool is_steady, bool is_unhurried) noexcept {
  retry_ = is_down && was_down_ ? std::min<Duration>(retry_ * 2, kLongestRetry) : Duration(kFirstRetry);
  was_down_ = is_down;
  const Duration longer = Times(std::max(interval_, shortest), is_unhurried ? kUnhurried : 2);
  interval_ = is_down || is_steady ? shortest : std::min<Duration>(longer, shortest * kSafetyNet);
}

}  // namespace antipode
