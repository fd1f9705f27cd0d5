/// \file
/// What a parked barrier waits for: one need a write and server, one group a barrier (spec BAR).
#ifndef ANTIPODE_ENGINE_NEED_H_
#define ANTIPODE_ENGINE_NEED_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "antipode/verdict.h"
#include "antipode/write_id.h"
#include "engine/time.h"

namespace antipode {

class Group;
class Server;

/// One write that one barrier waits for at one server. What changes is guarded by that server's lock until the group is
/// over; afterwards it changes no more.
struct Need {
  Need(WriteId id, std::shared_ptr<Server> at, Group& of);

  const WriteId write_id;
  const std::shared_ptr<Server> server;
  Group& group;
  const TimePoint since;
  std::string epoch;
  std::uint64_t counter = 0;
  bool is_position = false;

  /// Settled or given up.
  std::atomic<bool> done{false};
  /// The last answer of the server; nothing while it has not been asked.
  std::optional<Visibility> answer;
  /// When it was settled.
  std::optional<TimePoint> seen;
  /// It was not settled at once: it has to be waited for.
  bool parked = false;
  /// The number of the server's first question that speaks of it.
  std::uint64_t first_round = 0;
  /// The first look did not show the write.
  bool late = false;
  /// The server does not answer, and is left out of the pass.
  bool left_out = false;
  /// It was answered before its deadline, because waiting on would be in vain (BAR-40).
  bool overloaded = false;

  bool Is(Verdict verdict) const noexcept { return answer && answer->verdict == verdict; }
};

/// The needs of one barrier. It is over when every need is settled, or when the barrier gives up.
class Group : public std::enable_shared_from_this<Group> {
 public:
  /// `released` is called once, without any lock held, by the thread that settles the last need; without it somebody
  /// waits in `Wait`.
  explicit Group(Duration timeout, std::function<void()> released = nullptr);

  /// One more need; to be parked at its server.
  Need& Add(const WriteId& write_id, std::shared_ptr<Server> server);

  /// Everything is parked; true if something is still to be waited for.
  bool Parked() noexcept { return !CountDown(); }

  /// A need is over, one way or another; true where it was the last one and the group is to be released.
  bool Settle(Need& need, const Visibility* answer);

  /// Wakes the barrier.
  void Release();

  /// Blocks until the group was released, or this moment has come.
  void Wait(TimePoint deadline);

  /// Gives up what is not settled, at every server.
  void GiveUp();

  const Duration timeout;
  const TimePoint since;
  std::deque<Need> needs;
  /// Its barrier was cancelled: its place is given up, and nobody goes on asking for it.
  std::atomic<bool> cancelled{false};
  /// It only records when the writes are seen: nobody waits for them (dry-run). Set before anything is parked.
  bool follows = false;
  /// All places for waiting were taken.
  bool overloaded = false;

 private:
  bool CountDown() noexcept { return left_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  std::atomic<int> left_{1};  // one for the barrier itself, until it has parked everything
  std::function<void()> released_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
};

/// Keeps a need's group alive while somebody holds the need.
using NeedPtr = std::shared_ptr<Need>;

inline NeedPtr Hold(Need& need) { return {need.group.shared_from_this(), &need}; }

using Groups = std::vector<std::shared_ptr<Group>>;

/// Wakes barriers.
void ReleaseAll(const Groups& groups);

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_NEED_H_
