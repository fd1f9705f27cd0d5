/// \file
/// Monkey mode: which of the versions that a replica may show a read returns (spec MONKEY).
#ifndef ANTIPODE_MEMORY_MONKEY_H_
#define ANTIPODE_MEMORY_MONKEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "antipode/memory.h"

namespace antipode::memory {

/// A generator of 64 bits, the same in every language (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, OOPSLA 2014).
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) noexcept : state_(state) {}

  std::uint64_t Next() noexcept {
    std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31U);
  }

 private:
  std::uint64_t state_;
};

/// Chooses by a seed, for these regions: the same calls have the same answers, whatever is read in other regions
/// (MONKEY-8).
StaleChoice Seeded(std::uint64_t seed, const std::vector<std::string>& regions);

}  // namespace antipode::memory

#endif  // ANTIPODE_MEMORY_MONKEY_H_
