/// \file
/// A hybrid logical clock in 64 bits: the counters of objects whose store gives no ordered version (spec SHIM-24 to
/// SHIM-29).
#ifndef ANTIPODE_SHIM_HYBRID_CLOCK_H_
#define ANTIPODE_SHIM_HYBRID_CLOCK_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

#include "antipode/export.h"
#include "antipode/result.h"

namespace antipode ANTIPODE_EXPORT {

/// The number of a region where none was chosen: the first octet of the SHA-256 of its name (SHIM-29).
std::uint8_t PlaceNumber(std::string_view region);

/// Issues counters that grow, and pass all that it has observed. Safe among threads and after a fork.
///
/// A counter is unsigned: bits 63 to 14 hold the *tick*, the time in 1/256 ms since 1970 (until the year 2109), bits 13
/// to 0 the *node* that issued it.
class HybridClock {
 public:
  /// Nanoseconds since 1970.
  using TimeSource = std::function<std::int64_t()>;

  struct Options {
    /// The region's number, where counters of several regions meet; without it the whole node is drawn by chance.
    std::optional<std::uint8_t> place;
    /// The whole node, 0 to 16383, where numbers are assigned to the processes; not together with `place`.
    std::optional<std::uint16_t> node;
    /// How far ahead of this machine's time an observed counter may be (SHIM-27).
    std::chrono::nanoseconds max_ahead = std::chrono::seconds(60);
    /// The machine's own time where empty.
    TimeSource time;
  };

  HybridClock() : HybridClock(Options()) {}
  /// A node of more than 14 bits loses the upper ones; with a place and a node the node decides.
  explicit HybridClock(Options options);
  HybridClock(const HybridClock&) = delete;
  HybridClock& operator=(const HybridClock&) = delete;

  /// What ends every counter of this clock.
  std::uint16_t node() const;
  /// How many counters were refused because they are too far ahead.
  std::uint64_t refused() const { return refused_.load(); }

  /// A counter greater than any that this clock has issued or observed (SHIM-25).
  std::uint64_t Next();

  /// Makes every counter to come greater than this one; false where it is too far ahead, and refused (SHIM-27).
  bool Observe(std::uint64_t counter);

  /// A counter of this node just greater than a refused one, for its key alone; nothing where none is left (SHIM-28).
  ///
  /// The clock itself stays where it is.
  std::optional<std::uint64_t> Above(std::uint64_t counter) const;

 private:
  std::uint16_t NodeOfThisProcess() const;
  std::uint16_t Draw() const;

  const Options options_;
  mutable std::mutex mutex_;
  mutable std::uint64_t forks_;
  mutable std::uint16_t node_;
  std::uint64_t last_ = 0;
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_HYBRID_CLOCK_H_
