/// \file
/// Writes that dry-run follows with nobody waiting: looked at first, then parked until they are seen (spec REC-5,
/// REC-15).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_FOLLOWING_H_
#define ANTIPODE_SRC_DIAGNOSTICS_FOLLOWING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "antipode/shim/server.h"
#include "antipode/verdict.h"
#include "antipode/write_id.h"
#include "base/time.h"
#include "engine/need.h"

namespace antipode::following {

/// How long a write that was not visible is followed: 30 s.
Duration FollowFor() noexcept;
void SetFollowFor(Duration duration) noexcept;  ///< For tests.

/// Barriers and reads that are followed at once, a process.
inline constexpr int kMostFollowed = 1000;
void SetMostFollowed(int most) noexcept;  ///< For tests.
/// How many are followed now; what has ended has told whoever wanted to know.
int Followed() noexcept;
/// How many of them wait for the answers to their first look.
int Unanswered() noexcept;

/// One write at one server: what the first look said, and when it was seen.
struct Write {
  Write(std::shared_ptr<Server> at_server, WriteId id) : server(std::move(at_server)), write_id(std::move(id)) {}

  /// The first look found that it was not visible: the server knows the write's history, and was not so far.
  bool Late() const;
  /// The first look found it visible.
  bool ThereAtOnce() const { return first && first->verdict == Verdict::kVisible; }
  /// An answer has come; `after`: since the look.
  void Took(const std::optional<Visibility>& now, Duration after);

  std::shared_ptr<Server> server;
  WriteId write_id;
  std::optional<Visibility> first;  ///< Nothing where the server did not answer, or where nobody asked it any more.
  std::optional<std::uint64_t>
      at;  ///< How far the server was in the write's epoch at the first look, as far as it said.
  std::optional<Visibility> answer;  ///< The last one.
  bool left_out = false;  ///< The server did not answer for so long that a barrier would leave it out.
  std::optional<Duration> visible_after;
};

using Writes = std::vector<Write>;
using Wanted = std::vector<std::pair<std::shared_ptr<Server>, WriteId>>;
/// Called once, by a thread of the engine, when all are seen, given up, or after the time.
using Over = std::function<void(const Writes&)>;

/// Follows writes, with nobody waiting: the needs of the first look. Null where too many are followed, or where this
/// process has no memory for it; then nothing is called.
std::shared_ptr<WaitGroup> Follow(const Wanted& wanted, Over over);

/// Seconds until the last of these was seen; nothing where one was not.
std::optional<double> VisibleAfter(const std::vector<const Write*>& writes);

}  // namespace antipode::following

#endif  // ANTIPODE_SRC_DIAGNOSTICS_FOLLOWING_H_
