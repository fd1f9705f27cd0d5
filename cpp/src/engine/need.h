/// \file
/// What a parked barrier waits for: one need a write and server, one group a barrier (spec BAR).
///
/// How a barrier ends (BAR-63; the steps are those of `spec/tla/Reopen.tla`, the ages those of `Barrier.tla`):
/// 1. An answer settles a need under the generation that its server was in when the question was asked, with the time
///    of the asking. Both are written under the group's lock, and so is how many needs are open.
/// 2. Whoever settles the last one notes *the moment*: when its question was asked. Then, with no lock of a server
///    held, he compares each proof with its server's generation, under the group's lock. Generations only grow, so what
///    is equal when it is looked at was equal when he began: that is the instant at which all stood.
/// 3. What does not stand is opened again in the same step, and asked for at once. Where only its age was too great the
///    moment stays, so that one more round is enough however slow the link is; where the data may be others it is
///    another moment.
/// 4. One test-and-set decides who releases. The deadline looks once more itself: what does not stand then is not
///    visible.
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
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/verdict.h"
#include "antipode/write_id.h"
#include "base/time.h"

namespace antipode {

class WaitGroup;
class Server;

/// By which question an answer came.
struct Proof {
  TimePoint asked_at;
  /// The server's when it was asked.
  std::uint64_t generation = 0;
  /// It was asked for others, before anybody asked for this write here.
  bool is_kept = false;
};

/// One write that one barrier waits for at one server. What changes is guarded by that server's lock until the group is
/// over; afterwards it changes no more. What decides if the group is over changes under the group's lock, too.
struct PendingWait {
  PendingWait(WriteId id, std::shared_ptr<Server> at, WaitGroup& of);

  const WriteId write_id;
  const std::shared_ptr<Server> server;
  WaitGroup& group;
  const TimePoint since;
  std::string epoch;
  std::uint64_t counter = 0;
  bool is_position = false;

  /// Settled or given up.
  std::atomic<bool> done{false};
  /// The last answer of the server; nothing while it has not been asked.
  std::optional<Visibility> answer;
  /// When the question was asked that settled it, and the server's generation then.
  TimePoint asked_at{};
  std::uint64_t generation = 0;
  /// It is to be proved by what was asked for then or later.
  TimePoint fresh_from = kNever;
  /// It was proved before, only its proof was too old, and no answer since said that it is not there.
  bool repeats = false;
  /// When it was settled.
  std::optional<TimePoint> seen;
  /// It was not settled at once: it has to be waited for.
  bool parked = false;
  /// The number of the server's first question that speaks of it.
  std::uint64_t first_round = 0;
  /// The server does not answer, and is left out of the pass.
  bool left_out = false;
  /// It was answered before its deadline, because waiting on would be in vain (BAR-40).
  bool overloaded = false;

  bool Is(Verdict verdict) const noexcept { return answer && answer->verdict == verdict; }

  /// Whether it counts as it is: one that is visible must be proved under its server's present generation, by a
  /// question that was asked then or later.
  bool Stands(TimePoint oldest) const;

  /// It is to be asked for again, and proved by what was asked for then or later; the group's lock is held.
  void Open(TimePoint oldest);
};

/// The needs of one barrier. It is over when every need is settled, or when the barrier gives up.
class WaitGroup : public std::enable_shared_from_this<WaitGroup> {
 public:
  /// `released` is called once, without any lock held, by the thread that settles the last need; without it somebody
  /// waits in `Wait`. `since`: when its barrier began to wait.
  explicit WaitGroup(Duration timeout, std::function<void()> released = nullptr, TimePoint since = Clock::now());

  /// One more need; to be parked at its server.
  PendingWait& Add(const WriteId& write_id, std::shared_ptr<Server> server);

  /// Everything is parked; true if something is still to be waited for.
  bool Parked();

  /// Whether not everything was settled when it had been parked, as far as is known by now.
  bool HasWaited() const noexcept { return !was_settled_at_once_.load(); }

  /// A need is over, one way or another; true where it was the last one: then somebody is to `ReleaseAll`. The lock of
  /// the need's server is held.
  /// \param proof by which question the answer came; null where it is no server's, or makes nothing visible
  bool Settle(PendingWait& need, const Visibility* answer, const Proof* proof = nullptr) noexcept;

  /// True where no need is open and all proofs stand; what does not stand is asked for again at once (BAR-63). The
  /// caller holds no lock of a server, and releases the barrier where this is true: once.
  bool Conclude();

  /// Ends the barrier: what does not stand is visible no more, and nothing becomes visible any more. True for the first
  /// who ends it.
  bool End() noexcept;

  /// Its only need was settled while it waited: there is nothing that it has to stand together with.
  bool is_alone() const;

  /// Ends the barrier's wait where the servers are others by now, and the barrier names them anew (BAR-65). True for
  /// the first who ends it: then somebody is to release it.
  bool EndOutdated() noexcept;

  /// Whether it ended so.
  bool is_outdated() const;

  /// It waits for the names of servers, too, which end it (BAR-53). To be called before everything is parked.
  void AwaitNames();

  /// Nobody can ask for those names: this process has no thread for it (BAR-61). It goes on with its needs; true where
  /// none is open, as for `Settle`.
  bool MissNames() noexcept;

  /// Whether that was said.
  bool misses_names() const;

  /// Whether nothing can end it any more.
  bool IsOver() const;

  /// Wakes the barrier.
  void Release();

  /// Blocks until the group was released, or this moment has come.
  void Wait(TimePoint deadline);

  /// Gives up what is not settled, at every server.
  void GiveUp() noexcept;

  /// The same, and this is said of it.
  void Refuse(const Visibility& answer);

  const Duration timeout;
  const TimePoint since;
  std::deque<PendingWait> needs;
  /// Its barrier was cancelled: its place is given up, and nobody goes on asking for it.
  std::atomic<bool> cancelled{false};
  /// It only records when the writes are seen: nobody waits for them (dry-run). Set before anything is parked.
  bool follows = false;
  /// Each server shows its entries once more behind the last of them (BAR-64). Set before anything is parked.
  bool looks_twice = false;
  /// All places for waiting were taken.
  bool overloaded = false;
  /// Whether the servers are others by now; none: it waits where it was parked. Set before anything is parked.
  std::function<bool()> has_changed;
  /// They are those of wrapped clients (reach `replica`).
  bool is_own = false;

 private:
  bool EndOnce() noexcept { return !std::exchange(over_, true); }
  // When a question must have been asked, at the earliest, for its answer to count at the moment.
  TimePoint Oldest(Duration ttl) const noexcept { return looks_twice ? moment_ : moment_ - ttl; }

  std::function<void()> released_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int left_ = 1;  // one for the barrier itself, until it has parked everything
  bool over_ = false;
  bool is_parked_ = false;
  bool is_outdated_ = false;
  bool misses_names_ = false;
  bool is_alone_ = false;
  bool is_released_ = false;
  std::atomic<bool> was_settled_at_once_{false};
  TimePoint moment_{};
};

/// Says this of a need; without the words where this process has no memory for them (BAR-61).
void Say(std::optional<Visibility>& said, const Visibility& bare, std::string_view words) noexcept;

/// Keeps a need's group alive while somebody holds the need.
using NeedPtr = std::shared_ptr<PendingWait>;

inline NeedPtr Hold(PendingWait& need) { return {need.group.shared_from_this(), &need}; }

using Groups = std::vector<std::shared_ptr<WaitGroup>>;

/// Wakes the barriers whose proofs stand. The caller holds no lock of a server.
void ReleaseAll(const Groups& groups);

/// Groups that are over. They are woken when this goes, however it goes, with no lock of a server held.
struct Releases {
  Releases() = default;
  Releases(const Releases&) = delete;
  Releases& operator=(const Releases&) = delete;
  ~Releases() { ReleaseAll(groups); }
  Groups groups;
};

/// Ends the waits of those whose servers are others by now, and wakes them.
void EndOutdated(const Groups& groups);

/// Ends barriers that cannot pass any more, and wakes them: nothing is asked for again.
void EndAll(const Groups& groups);

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_NEED_H_
