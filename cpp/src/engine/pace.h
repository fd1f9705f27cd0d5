/// \file
/// When the thread that asks a server asks it next (spec BAR-38, BAR-66).
///
/// At once for whoever is new; else no more than once a shortest interval, and where the server's position grows,
/// when the nearest one that somebody waits for should be there. Growth is told from answers alone, from the asking of
/// one to the asking of the next, so that the round trip is in it already. A push says that something was applied, and
/// not how much: each stands for its share of the growth. Where nothing is predicted (the position stands still, is of
/// other data than before, or is not all that is asked for) the server is asked for each push, and else with a poll's
/// back-off. A prediction says when to ask; what is visible, only the answer says.
#ifndef ANTIPODE_ENGINE_PACE_H_
#define ANTIPODE_ENGINE_PACE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "engine/reachability.h"

namespace antipode {

/// A server that somebody waits for is asked after so long in any case, or after a longer shortest interval.
constexpr Duration kCap = std::chrono::milliseconds(50);

/// How a server's position grows, as its answers show it. The server's lock guards it, but for pushes.
class Growth {
 public:
  /// An answer of this instance and epoch: asked then, it was so far.
  void Note(const std::string& instance, const std::string& epoch, TimePoint asked_at, std::uint64_t counter);

  /// A push: something was applied. Any thread, without a lock.
  void NotePush() noexcept { pushed_.fetch_add(1, std::memory_order_relaxed); }

  /// When a question should find this position, or is due without it; nothing where nothing tells.
  std::optional<TimePoint> ExpectedAt(const std::string& instance, const std::string& epoch,
                                      std::uint64_t counter) const;

  /// Whether the pushes since the last answer may have brought this position, or come seldom.
  bool IsPushedTo(std::uint64_t counter) const noexcept;

 private:
  double Way(std::uint64_t counter) const noexcept;

  std::string instance_;
  std::string epoch_;
  TimePoint asked_at_{};
  std::uint64_t counter_ = 0;
  bool is_moving_ = false;
  // How far it came, in how many ticks of the clock, with how many pushes.
  double grown_ = 0;
  double spent_ = 0;
  double pushes_ = 0;
  std::atomic<int> pushed_{0};  // since the last answer
};

/// The thread's own: the times of its last questions, its poll interval, its pause after a failure.
class Pace {
 public:
  explicit Pace(TimePoint asked_at) noexcept : asked_at_(asked_at) {}

  /// When the last question began.
  TimePoint asked_at() const noexcept { return asked_at_; }

  /// The pause behind a failure.
  Duration retry() const noexcept { return retry_; }

  /// Whether the server has pushed, and is to be asked for it when that is due.
  bool has_news() const noexcept { return has_news_; }
  void NoteNews() noexcept { has_news_ = true; }

  /// Asks soon again: of what has just come, it is known the sooner.
  void Hurry() noexcept { interval_ = Duration::zero(); }

  /// When to ask for those who wait. `expected`: when the position that comes first is; `is_pushed_to`: whether the
  /// pushes may have brought it.
  TimePoint Due(Duration shortest, std::optional<TimePoint> expected, bool is_pushed_to) const;

  /// A question begins. `is_paced`: it is due, and not for somebody new alone.
  void Begin(TimePoint now, bool is_paced) noexcept;

  /// What came of it: silence, something new, or nothing.
  void End(Duration shortest, bool is_down, bool is_steady, bool is_unhurried) noexcept;

  /// Whether the store's own wait lately waited, or saw something: one that comes back at once is a poll.
  bool blocks = true;

 private:
  TimePoint asked_at_;
  TimePoint paced_at_ = kNever;  // when it was last asked for nobody who is new
  Duration interval_{};
  Duration retry_ = kFirstRetry;
  bool was_down_ = false;
  bool has_news_ = false;
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_PACE_H_
