/// \file
/// How far a server was seen to be: watermarks, which belong to one instance and epoch (spec BAR-33, BAR-34).
#ifndef ANTIPODE_ENGINE_PROOFS_H_
#define ANTIPODE_ENGINE_PROOFS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "antipode/epochs.h"
#include "engine/time.h"

namespace antipode {

class Waiters;

/// Proofs of one server. The server's lock guards it; `Fresh` needs none.
class Proofs {
 public:
  /// One reply proved this. What another instance or epoch proved is dropped, and all of it where the server went back.
  /// Nothing of a reply that was overtaken is kept.
  void Take(const std::string& instance, const std::string& epoch, const Ends& positions, TimePoint now,
            Waiters& waiters);

  /// Nothing is proved any more: the data were replaced, or may be others now.
  void Drop();

  /// A question goes out now: its answer speaks of the data as they are.
  void Asked() noexcept { asked_under_ = drops_; }

  /// Whether the data were replaced while the last question was on its way: its answer may speak of those before
  /// (BAR-33).
  bool Overtaken() const noexcept { return asked_under_ != drops_; }

  /// And nothing is known of where the server was.
  void Forget();

  /// Whether a position is covered, however old the reply is.
  bool Cover(const std::string& epoch, std::uint64_t counter) const;

  /// Whether it is covered by a reply of the last `ttl`.
  bool Hold(const std::string& epoch, std::uint64_t counter, TimePoint now, Duration ttl) const;

  /// Another number whenever something was dropped: what was covered before may not be covered now.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// Whether nothing was dropped since that number, and the server has answered within `ttl`. No lock.
  bool Fresh(std::uint64_t generation, TimePoint now, Duration ttl) const noexcept {
    // In this order: whoever sees the time of a reply that dropped proofs sees the new number, too.
    const Duration::rep answered = answered_at_.load(std::memory_order_acquire);
    return generation_.load(std::memory_order_acquire) == generation &&
           now.time_since_epoch().count() - answered <= ttl.count();
  }

  /// The server has answered, whether that proved anything or not.
  void Answered(TimePoint now) noexcept {
    answered_at_.store(now.time_since_epoch().count(), std::memory_order_release);
  }
  TimePoint answered_at() const noexcept {
    return TimePoint(Duration(answered_at_.load(std::memory_order_relaxed)));
  }

  const std::string& epoch() const noexcept { return epoch_; }
  const Ends& applied() const noexcept { return applied_; }

  /// Where the server was last seen, for a person.
  std::string Position() const;

 private:
  std::string instance_;
  std::string epoch_;
  Ends applied_;
  std::uint64_t drops_ = 0;
  std::uint64_t asked_under_ = 0;
  std::atomic<std::uint64_t> generation_{0};
  static constexpr Duration::rep kLongAgo = -(Duration::rep{1} << 61);
  std::atomic<Duration::rep> answered_at_{kLongAgo};
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_PROOFS_H_
