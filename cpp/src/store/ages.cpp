#include "store/ages.h"

#include <algorithm>

namespace antipode {
namespace {

constexpr std::size_t kMostAges = 128;
constexpr Duration kAgeStep = std::chrono::milliseconds(100);

}  // namespace

void Ages::Note(const std::string& epoch, std::uint64_t counter, TimePoint now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (epoch != epoch_) {
    epoch_ = epoch;
    seen_.clear();
  }
  if (!seen_.empty() && (counter <= seen_.back().first || now - seen_.back().second < kAgeStep)) return;
  seen_.emplace_back(counter, now);
  if (seen_.size() > kMostAges) seen_.pop_front();
}

Duration Ages::Lag(const std::string& epoch, std::uint64_t counter, TimePoint now) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (epoch != epoch_) return Duration::zero();
  const auto next =
      std::find_if(seen_.begin(), seen_.end(), [counter](const auto& each) { return each.first > counter; });
  return next == seen_.end() ? Duration::zero() : now - next->second;
}

}  // namespace antipode
