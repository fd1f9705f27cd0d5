// Positions: an epoch names one timeline of one system, its counter is a place in that timeline's log (spec EPOCH-6,
// EPOCH-29).
#ifndef ANTIPODE_POSTGRESQL_SRC_POSITIONS_H_
#define ANTIPODE_POSTGRESQL_SRC_POSITIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace antipode::postgresql {

// A timeline of a system, and the word that tells it from another one of the same number.
//
// Two standbys that were promoted apart both call their new timeline by the same number; each has a word of its own, in
// the row that the first wrapped writer of the timeline made.
struct Epoch {
  std::uint64_t system = 0;
  std::uint32_t timeline = 0;
  std::string word;  // empty where the store has no table of epochs

  std::string Name() const;
};

// The epoch of this name; nothing where it is none of PostgreSQL's.
std::optional<Epoch> EpochOf(std::string_view name);

// `1/2A` as a number; nothing where it is none.
std::optional<std::uint64_t> NumberOf(std::string_view lsn);

// A number as `1/2A`.
std::string LsnOf(std::uint64_t number);

// A decimal number as a server writes it; nothing where it is none.
std::optional<std::uint64_t> DecimalOf(std::string_view text);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_POSITIONS_H_
