/// \file
/// How far a server was seen to be: watermarks, which belong to one instance and epoch (spec BAR-33, BAR-34).
#ifndef ANTIPODE_ENGINE_PROOFS_H_
#define ANTIPODE_ENGINE_PROOFS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "antipode/shim/epochs.h"
#include "base/time.h"

namespace antipode {

class WaitQueue;

/// Proofs of one server. The server's lock guards it; `Fresh` needs none.
class Proofs {
 public:
  /// The reply to the question under way proved this. What another instance or epoch proved is dropped, and all of it
  /// where the server went back: then this is the first word of the data that it has now. Nothing of a reply that was
  /// overtaken is kept.
  void Take(const std::string& instance, const std::string& epoch, const Ends& positions, WaitQueue& waiters);

  /// Nothing is proved any more: the data were replaced, or may be others now.
  void Drop();

  /// A question goes out now: its answer speaks of the data as they are, and its proofs are as old as this.
  void Asked(TimePoint now) noexcept {
    asked_under_ = generation();
    asked_at_ = now;
    has_proved_ = false;
  }

  /// When the last question went out.
  TimePoint asked_at() const noexcept { return asked_at_; }

  /// What the answer to it proved; nothing where it said no position: what an earlier one proved is as old as that one.
  const Ends& ProvedNow() const noexcept;

  /// Whether the data were replaced while the last question was on its way: its answer may speak of those before
  /// (BAR-33).
  bool Overtaken() const noexcept { return asked_under_ != generation(); }

  /// And nothing is known of where the server was.
  void Forget();

  /// Whether a position is covered, however old the reply is.
  bool Cover(const std::string& epoch, std::uint64_t counter) const;

  /// Whether it is covered by a reply to a question of the last `ttl`.
  bool Hold(const std::string& epoch, std::uint64_t counter, TimePoint now, Duration ttl) const;

  /// It grows whenever something is dropped: what was covered before may not be covered now (BAR-63).
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// Whether nothing was dropped since that number, and what is proved was asked for within `ttl`. No lock.
  bool Fresh(std::uint64_t generation, TimePoint now, Duration ttl) const noexcept {
    // In this order: whoever sees the time of a reply that dropped proofs sees the new number, too.
    const Duration::rep proved = proved_at_.load(std::memory_order_acquire);
    return generation_.load(std::memory_order_acquire) == generation &&
           now.time_since_epoch().count() - proved <= ttl.count();
  }

  /// When that was asked for which is proved.
  TimePoint proved_at() const noexcept { return TimePoint(Duration(proved_at_.load(std::memory_order_relaxed))); }

  /// The server has answered, whether that proved anything or not.
  void Answered(TimePoint now) noexcept { answered_at_ = now; }
  TimePoint answered_at() const noexcept { return answered_at_; }

  const std::string& instance() const noexcept { return instance_; }
  const std::string& epoch() const noexcept { return epoch_; }
  const Ends& applied() const noexcept { return applied_; }

  /// Where the server was last seen, for a person.
  std::string Position() const;

 private:
  std::string instance_;
  std::string epoch_;
  Ends applied_;
  static constexpr Duration::rep kLongAgo = -(Duration::rep{1} << 61);
  // The question under way.
  std::uint64_t asked_under_ = 0;
  TimePoint asked_at_{};
  bool has_proved_ = false;
  TimePoint answered_at_{Duration(kLongAgo)};
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<Duration::rep> proved_at_{kLongAgo};
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_PROOFS_H_
