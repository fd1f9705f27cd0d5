// The question that rides behind a write, and what its answer says (`INFO replication`).
#ifndef ANTIPODE_REDIS_INFO_H_
#define ANTIPODE_REDIS_INFO_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "antipode/write_id.h"

namespace antipode::redis {

// So many hex digits of a replication id name an epoch.
inline constexpr std::size_t kEpochDigits = 16;

// `INFO replication`, packed: it is appended to the bytes of the write itself.
inline constexpr std::string_view kQuestion = "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n";

// What a server says of its place in replication.
struct Replication {
  bool primary = false;
  std::string epoch;             // its own history: the first digits of its replication id
  std::uint64_t offset = 0;      // what it has executed (a primary) or applied (a replica) of that history
  std::string before;            // the history that it continued, if it knows one; else empty
  std::uint64_t before_end = 0;  // where it left that one: it has all below. At a replica not the fork.
  bool backlog = false;          // whether its offsets count: without a backlog they stand still
  bool read_only = false;        // whether it refuses writes as a replica does
  bool link = false;             // whether a replica hears its primary; true for a primary

  // Where the data that it serves are; nothing where its offset says nothing about them.
  std::optional<Ordered> Position() const;
};

// The whole answer; nothing for what is no answer to the question.
std::optional<Replication> ParseReplication(std::string_view reply);

// The word of one line of an INFO answer; empty where it has none.
std::string_view WordOf(std::string_view info, std::string_view name);

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_INFO_H_
