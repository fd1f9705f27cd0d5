// Messages of one channel that go back to their queue after a delay, and what the application has settled meanwhile.
#ifndef ANTIPODE_RABBITMQ_RETURNS_H_
#define ANTIPODE_RABBITMQ_RETURNS_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "message.h"

namespace antipode::rabbitmq {

// The open deliveries of one channel, and those that wait to go back. It keeps the books; its user sends.
//
// A message goes back by `basic.nack`, which a broker counts as a failed delivery. Until then it stays unacknowledged:
// should the channel or the process end first, the broker gives it back by itself.
class Returns {
 public:
  using Clock = std::chrono::steady_clock;

  void Opened(const std::shared_ptr<DeliveredState>& delivered);
  // This message goes back then.
  void GiveBack(std::uint64_t tag, Clock::time_point due);

  // Returns whether this message goes back, or has: acknowledged, it would be lost (PROP-36).
  bool GoesBack(std::uint64_t tag) const { return due_.count(tag) != 0 || returning_.count(tag) != 0; }

  // Those whose time has come, which are to be returned now.
  std::vector<std::uint64_t> TakeDue(Clock::time_point now);
  std::optional<Clock::time_point> NextDue() const;

  static constexpr std::uint64_t kNothing = std::numeric_limits<std::uint64_t>::max();  // no delivery's tag
  // Returns the tag by which all that was handed out is settled: 0, unless something has gone back. That would cover the
  // copies that have come again meanwhile: then the last that is not settled, or `kNothing` (PROP-36).
  std::uint64_t LastOfAll() const {
    if (due_.empty() && returning_.empty()) return 0;
    return open_.empty() ? kNothing : open_.rbegin()->first;
  }

  // The application settles messages itself: none of them may be given back any more. Gives those that still wait and
  // would be settled along with a later one: they go back first, at once.
  std::vector<std::uint64_t> Settling(std::uint64_t tag, bool multiple);
  // The broker takes all unacknowledged messages back itself.
  void Forget(std::string_view why);

  // How many deliveries are in the books.
  std::size_t kept() const { return open_.size() + due_.size(); }

 private:
  std::map<std::uint64_t, std::weak_ptr<DeliveredState>> open_;
  std::map<std::uint64_t, Clock::time_point> due_;
  std::set<std::uint64_t> returning_;  // the latest that go back, or have: no tag comes twice in a channel's life
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_RETURNS_H_
