#include "engine/need.h"

#include <utility>

#include "antipode/server.h"

namespace antipode {

Need::Need(WriteId id, std::shared_ptr<Server> at, Group& of)
    : write_id(std::move(id)), server(std::move(at)), group(of), since(of.since) {
  if (write_id.is_position()) {
    epoch = write_id.ordered()->epoch;
    counter = write_id.ordered()->counter;
    is_position = true;
  }
}

Group::Group(Duration limit, std::function<void()> released)
    : timeout(limit), since(Clock::now()), released_(std::move(released)) {}

Need& Group::Add(const WriteId& write_id, std::shared_ptr<Server> server) {
  left_.fetch_add(1, std::memory_order_relaxed);  // those that are parked already may be settled meanwhile
  return needs.emplace_back(write_id, std::move(server), *this);
}

bool Group::Settle(Need& need, const Visibility* answer) {
  if (need.done.load(std::memory_order_relaxed)) return false;
  need.seen = Clock::now();
  if (answer != nullptr) need.answer = *answer;
  need.done.store(true, std::memory_order_release);
  return CountDown();
}

void Group::Release() {
  if (released_) {
    released_();
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  over_ = true;
  changed_.notify_one();
}

void Group::Wait(TimePoint deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_until(lock, deadline, [this] { return over_; });
}

void Group::GiveUp() {
  for (Need& need : needs) need.server->GiveUp(need);
}

void ReleaseAll(const Groups& groups) {
  for (const auto& group : groups) group->Release();
}

}  // namespace antipode
