/// \file
/// Who waits at one server, what it is to be asked for them, and what an answer settles (spec BAR, EPOCH).
///
/// Nothing here asks or sleeps: `Server` does, and holds its lock round every call.
///
/// When a barrier is told *too late* before its deadline (BAR-40, BAR-57):
/// 1. Never without a look. Whoever comes is parked, and asked for in the next question. Only behind an answer
/// `not_yet`
///    to that may it be given up early, where the reason stands even then.
/// 2. Lag: a position's age counts from when any server of the store was seen past it (`Ages`), so that only servers
/// make
///    lag, never what somebody asks for. A server's lag is the age of its newest position; it counts above the
///    deadline.
/// 3. Stuck: five waits for one key (an object) or epoch (a position) timed out in a row. Each began after the server
/// last
///    moved, and none was much shorter than the deadline now. Any growth of the server's position, a write of the key
///    or epoch that is seen, and ten seconds without another time-out end it. What was cancelled, refused a place or
///    only recorded does not count, nor an unknown epoch.
#ifndef ANTIPODE_ENGINE_WAITERS_H_
#define ANTIPODE_ENGINE_WAITERS_H_

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/shim/epochs.h"
#include "engine/need.h"
#include "engine/position_queue.h"

namespace antipode {

/// The needs that are parked at one server: positions by epoch, least first, and all others by write.
class WaitQueue {
 public:
  /// The least position of an epoch that was given up, and since when it was wanted: one prober goes on for it.
  struct Probe {
    std::uint64_t counter;
    TimePoint since;
    WriteId write_id;
  };

  /// `in_turns`: the shim asks for one object after the other, so that what is unanswered was not asked for
  /// (`Shim::OwnPace`).
  explicit WaitQueue(bool in_turns) : in_turns_(in_turns) {}

  /// Needs that are neither settled nor given up.
  std::size_t live() const noexcept { return live_; }

  /// Whether the server is to be asked for anybody.
  bool wanted() const noexcept { return live_ > 0 || !probes_.empty(); }

  /// Whether the server is asked for records alone, so that an answer may take its time (REC-21).
  bool only_follows() const noexcept { return live_ > 0 && live_ == followed_ && probes_.empty(); }

  /// Whether somebody only looks (a timeout of 0).
  bool looked_at() const noexcept { return !looks_.empty(); }

  /// Whether a barrier waits for any of it now: not one that only looks or records, and no prober.
  bool awaited() const;

  /// The barriers of a reach that wait for any of it, and name their servers anew where those change.
  Groups Changing(bool own) const;

  /// The least position of this epoch that is waited for; nothing where something else is, too, or nobody waits.
  std::optional<std::uint64_t> Nearest(const std::string& epoch);

  const std::map<std::string, Probe>& probes() const noexcept { return probes_; }

  // Coming and going

  /// Parks a need; true where an earlier one of the same epoch has to be seen first. `lag`: the server's, where the
  /// need is for the epoch that it is in, else zero. Where this process has no memory for it, it is not parked.
  bool Add(PendingWait& need, Duration lag);

  /// The barrier's deadline has passed, or it was cancelled; a prober goes on for the least position.
  void GiveUp(PendingWait& need, TimePoint now) noexcept;

  /// The server or its epoch is another one: what it did not know, it may know now.
  void ForgetUnknown() { unknown_.clear(); }

  /// Nobody is asked for any more but who waits.
  void ForgetProbes() { probes_.clear(); }

  // Asking

  /// What to ask for: of each epoch the least position that somebody waits for (the others come after it).
  std::vector<WriteId> Choose(TimePoint now, TimePoint wanted_at);

  // Answers, and the groups that are over by them

  /// Settles what the answers decide, and the proofs that came with them: the server has applied so much.
  /// `proof`: by which question they came.
  /// `lag`: the server's, after this answer, for needs of the epoch that it is in.
  /// `released`: gets what is over, also where an exception comes.
  void Answer(const std::vector<WriteId>& ids, const std::vector<Visibility>& answers, const Ends& applied,
              TimePoint now, const Proof& proof, const std::string& epoch, Duration lag, Groups& released);

  /// One answer for whoever waits.
  Groups AnswerAll(const Visibility& answer);

  /// The server is out: whoever waits goes on without it.
  Groups LeaveOut();

 private:
  // Waits in a row that timed out for one key or epoch.
  struct TimeoutStreak {
    int times;
    Duration shortest;
    TimePoint last;
  };
  // An epoch that the server does not know: since when, and when it last said so.
  struct UnknownEpoch {
    TimePoint since;
    TimePoint last;
  };
  struct OtherWaits {
    WriteId write_id;
    std::vector<NeedPtr> needs;
  };
  using StuckBy = std::map<std::string, TimeoutStreak>;
  // One store's writes of objects, in an order.
  struct WriteOrder {
    bool operator()(const WriteId* one, const WriteId* other) const noexcept;
  };

  bool Keep(PendingWait& need);
  void Count(const PendingWait& need, int change);
  PendingWait* First(const std::string& epoch);
  void ForgetOther(const PendingWait& need) noexcept;
  void Remember(const PendingWait& need, TimePoint now);
  void AnswerPosition(const WriteId& write_id, const Visibility& answer, TimePoint now, const Proof& proof,
                      Groups& released);
  void AnswerOther(const WriteId& write_id, const Visibility& answer, const Proof& proof, Groups& released);
  void DropProbe(const std::string& epoch, std::uint64_t applied);
  void EndLooks(Groups& released, const std::string& epoch, Duration lag, TimePoint now);
  std::string Overload(const PendingWait& need, Duration lag, TimePoint now) const;
  void NoteTimeout(const PendingWait& need, TimePoint now);
  void ForgetOld(TimePoint now);
  void Reach(PositionQueue& queue, std::uint64_t counter, const Visibility& answer, const Proof& proof,
             Groups& released);
  void Settle(PendingWait& need, const Visibility* answer, const Proof* proof, Groups& released) noexcept;
  std::vector<NeedPtr> All() const;
  std::vector<NeedPtr> TakeAll(Groups& released);
  StuckBy& StuckOf(const PendingWait& need) { return need.is_position ? stuck_epochs_ : stuck_keys_; }

  bool in_turns_;
  std::size_t live_ = 0;
  std::size_t followed_ = 0;  // of them: nobody waits for these
  std::vector<NeedPtr> looks_;
  std::map<std::string, Probe> probes_;
  std::map<std::string, PositionQueue> ordered_;
  std::list<OtherWaits> others_;  // in the order in which they are asked for
  std::map<const WriteId*, std::list<OtherWaits>::iterator, WriteOrder> by_write_;  // by what stands in the list
  std::uint64_t rounds_ = 0;
  std::map<std::string, UnknownEpoch> unknown_;
  StuckBy stuck_epochs_;  // of positions
  StuckBy stuck_keys_;    // of objects
  Ends applied_;
  TimePoint moved_at_ = kNever;
};

/// How long a server is asked on after the last barrier.
Duration Linger() noexcept;

/// For tests: another time for that.
void SetLinger(Duration linger) noexcept;

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_WAITERS_H_
