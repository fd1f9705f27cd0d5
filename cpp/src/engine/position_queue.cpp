#include "engine/position_queue.h"

#include <algorithm>
#include <utility>

namespace antipode {
namespace {

constexpr std::size_t kFewGivenUp = 64;

bool Done(const NeedPtr& need) noexcept { return need->done.load(std::memory_order_relaxed); }

}  // namespace

bool PositionQueue::After(const Entry& one, const Entry& other) noexcept {
  return one.counter != other.counter ? one.counter > other.counter : one.number > other.number;
}

void PositionQueue::Push(NeedPtr need) {
  const std::uint64_t counter = need->counter;
  heap_.push_back({counter, numbers_++, std::move(need)});
  std::push_heap(heap_.begin(), heap_.end(), After);
}

NeedPtr PositionQueue::Pop() {
  std::pop_heap(heap_.begin(), heap_.end(), After);
  NeedPtr need = std::move(heap_.back().need);
  heap_.pop_back();
  return need;
}

PendingWait* PositionQueue::First() {
  while (!heap_.empty() && Done(heap_.front().need)) {
    Pop();
    if (given_up_ > 0) --given_up_;
  }
  return heap_.empty() ? nullptr : heap_.front().need.get();
}

NeedPtr PositionQueue::TakeReached(std::uint64_t counter) noexcept {
  const PendingWait* first = First();
  return first != nullptr && first->counter <= counter ? Pop() : nullptr;
}

std::vector<NeedPtr> PositionQueue::From(std::uint64_t counter) {
  std::vector<NeedPtr> taken;
  std::vector<Entry> kept;
  taken.reserve(heap_.size());
  kept.reserve(heap_.size());
  for (Entry& entry : heap_) {
    if (entry.counter < counter) {
      kept.push_back(std::move(entry));
    } else if (!Done(entry.need)) {
      taken.push_back(std::move(entry.need));
    }
  }
  heap_ = std::move(kept);
  std::make_heap(heap_.begin(), heap_.end(), After);
  return taken;
}

std::vector<NeedPtr> PositionQueue::All() const {
  std::vector<NeedPtr> all;
  for (const Entry& entry : heap_) {
    if (!Done(entry.need)) all.push_back(entry.need);
  }
  return all;
}

void PositionQueue::GivenUp() {
  ++given_up_;
  if (given_up_ < kFewGivenUp || given_up_ * 2 < heap_.size()) return;
  heap_.erase(std::remove_if(heap_.begin(), heap_.end(), [](const Entry& entry) { return Done(entry.need); }),
              heap_.end());
  std::make_heap(heap_.begin(), heap_.end(), After);
  given_up_ = 0;
}

}  // namespace antipode
