/// \file
/// The needs for positions of one epoch at one server, least first.
#ifndef ANTIPODE_ENGINE_POSITION_QUEUE_H_
#define ANTIPODE_ENGINE_POSITION_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/need.h"

namespace antipode {

/// A heap by counter. Needs that were given up meanwhile are passed over, and swept out when they become many.
class PositionQueue {
 public:
  void Push(NeedPtr need);

  /// The need for the least position, or null.
  PendingWait* First();

  /// Takes out the need for the least position, where that is at most `counter`; else null.
  NeedPtr TakeReached(std::uint64_t counter) noexcept;

  /// Takes out the needs for positions from `counter` on; all of them or, where there is no memory for it, none.
  std::vector<NeedPtr> From(std::uint64_t counter);

  /// So many there are at most.
  std::size_t size() const noexcept { return heap_.size(); }

  /// The needs, in no particular order.
  std::vector<NeedPtr> All() const;

  /// One of its needs was given up.
  void GivenUp();

 private:
  struct Entry {
    std::uint64_t counter;
    std::uint64_t number;  // keeps equal counters in the order of arrival
    NeedPtr need;
  };

  static bool After(const Entry& one, const Entry& other) noexcept;
  NeedPtr Pop();

  std::vector<Entry> heap_;
  std::uint64_t numbers_ = 0;
  std::size_t given_up_ = 0;
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_POSITION_QUEUE_H_
