#include "engine/proofs.h"

#include "engine/waiters.h"

namespace antipode {
namespace {

std::uint64_t CounterIn(const Ends& ends, const std::string& epoch) {
  const auto found = ends.find(epoch);
  return found == ends.end() ? 0 : found->second;
}

}  // namespace

void Proofs::Take(const std::string& instance, const std::string& epoch, const Ends& positions, WaitQueue& waiters) {
  if (Overtaken()) return;
  const bool went_back = CounterIn(positions, epoch) < CounterIn(applied_, epoch);
  if (instance != instance_ || epoch != epoch_ || went_back) {
    Drop();  // first, and whole: what follows takes memory
    asked_under_ = generation();
    instance_ = instance;
    epoch_ = epoch;
    applied_ = positions;
    waiters.ForgetUnknown();
  } else {
    for (const auto& [name, counter] : positions) applied_.insert_or_assign(name, counter);
  }
  has_proved_ = true;
  proved_at_.store(asked_at_.time_since_epoch().count(), std::memory_order_release);
}

const Ends& Proofs::ProvedNow() const noexcept {
  static const Ends nothing;
  return has_proved_ ? applied_ : nothing;
}

void Proofs::Drop() {
  generation_.fetch_add(1, std::memory_order_acq_rel);
  applied_.clear();
  instance_.clear();
  answered_at_ = TimePoint(Duration(kLongAgo));
  proved_at_.store(kLongAgo, std::memory_order_release);
}

void Proofs::Forget() {
  Drop();
  epoch_.clear();
}

bool Proofs::Cover(const std::string& epoch, std::uint64_t counter) const {
  const auto found = applied_.find(epoch);
  return found != applied_.end() && found->second >= counter;
}

bool Proofs::Hold(const std::string& epoch, std::uint64_t counter, TimePoint now, Duration ttl) const {
  return ttl > Duration::zero() && Cover(epoch, counter) && Fresh(generation(), now, ttl);
}

std::string Proofs::Position() const {
  if (epoch_.empty()) return "an unknown position";
  return epoch_.substr(0, 4) + "…." + std::to_string(CounterIn(applied_, epoch_));
}

}  // namespace antipode
