#include "engine/need.h"

#include <algorithm>
#include <new>
#include <utility>

#include "antipode/shim/server.h"
#include "base/in_force.h"
#include "engine/threads.h"
#include "store/server.h"

namespace antipode {

PendingWait::PendingWait(WriteId id, std::shared_ptr<Server> at, WaitGroup& of)
    : write_id(std::move(id)), server(std::move(at)), group(of), since(of.since) {
  if (write_id.is_position()) {
    epoch = write_id.ordered()->epoch;
    counter = write_id.ordered()->counter;
    is_position = true;
  }
}

bool PendingWait::Stands(TimePoint oldest) const {
  return !Is(Verdict::kVisible) || (generation == server->impl().generation() && asked_at >= oldest);
}

void PendingWait::Open(TimePoint oldest) {
  repeats = generation == server->impl().generation();
  fresh_from = oldest;
  answer.reset();
  seen.reset();
  parked = false;
  done.store(false, std::memory_order_relaxed);
}

WaitGroup::WaitGroup(Duration limit, std::function<void()> released, TimePoint begun)
    : timeout(limit), since(begun), released_(std::move(released)) {}

PendingWait& WaitGroup::Add(const WriteId& write_id, std::shared_ptr<Server> server) {
  const std::lock_guard<std::mutex> lock(mutex_);  // those that are parked already may be settled meanwhile
  ++left_;
  return needs.emplace_back(write_id, std::move(server), *this);
}

bool WaitGroup::Parked() {
  bool is_last = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_last = --left_ == 0;
    is_parked_ = true;
  }
  if (!is_last || !Conclude()) return true;
  was_settled_at_once_.store(true);
  return false;
}

bool WaitGroup::Settle(PendingWait& need, const Visibility* answer, const Proof* proof) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (need.done.load(std::memory_order_relaxed)) return false;
  const bool is_last = --left_ == 0;
  const bool is_late = over_ && answer != nullptr && answer->verdict == Verdict::kVisible;
  if (!is_late) {  // else the barrier has looked at what it had
    if (answer != nullptr) {
      Say(need.answer, {answer->verdict, {}, answer->unknown_epoch, answer->kind, answer->unanswered}, answer->reason);
    }
    const TimePoint now = Clock::now();
    need.seen = now;
    const Proof by = proof != nullptr ? *proof : Proof{now};
    if (!need.repeats || by.generation != need.generation) moment_ = looks_twice || by.is_kept ? now : by.asked_at;
    need.asked_at = by.asked_at;
    need.generation = by.generation;
  }
  need.done.store(true, std::memory_order_release);
  if (is_last && needs.size() == 1) {  // its own answer is the moment
    is_alone_ = true;
    return EndOnce();
  }
  return is_last && !is_late;
}

bool WaitGroup::Conclude() {
  const Duration ttl = InForce()->free_path_ttl;
  while (true) {
    std::vector<PendingWait*> stale;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (left_ > 0 || over_) return false;
      if (follows) return EndOnce();  // nobody relies on a record
      const TimePoint oldest = Oldest(ttl);
      stale.reserve(needs.size());  // first: what is open is parked
      for (PendingWait& need : needs) {
        if (need.Stands(oldest)) continue;
        need.Open(oldest);
        ++left_;
        stale.push_back(&need);
      }
      if (stale.empty()) return EndOnce();
    }
    bool may_be_over = false;
    for (PendingWait* need : stale) may_be_over = need->server->impl().Park(*need) || may_be_over;
    if (EndOutdated()) return true;  // a server that left wakes nobody who is parked there now (BAR-65)
    if (!may_be_over) return false;
    if (is_alone()) return true;  // settled at once, by this thread
  }
}

bool WaitGroup::End() noexcept {
  const Duration ttl = InForce()->free_path_ttl;
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_first = EndOnce();
  if (follows || !(is_first || is_outdated_)) return is_first;
  const auto is_done = [](const PendingWait& need) { return need.done.load(std::memory_order_relaxed); };
  const TimePoint oldest = std::all_of(needs.begin(), needs.end(), is_done) ? Oldest(ttl) : kNever;
  for (PendingWait& need : needs) {
    if (is_done(need) && !need.Stands(oldest)) {
      Say(need.answer, Visibility::NotYet(), "it was there, and may be gone again");
    }
  }
  return is_first;
}

bool WaitGroup::EndOutdated() noexcept {
  if (!has_changed || !has_changed()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_parked_ || over_) return false;
  is_outdated_ = true;
  return EndOnce();
}

bool WaitGroup::is_outdated() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_outdated_;
}

void WaitGroup::AwaitNames() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++left_;
}

bool WaitGroup::MissNames() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  misses_names_ = true;
  return --left_ == 0;
}

bool WaitGroup::misses_names() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return misses_names_;
}

bool WaitGroup::IsOver() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return over_;
}

bool WaitGroup::is_alone() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_alone_;
}

void WaitGroup::Release() {
  if (released_) {
    released_();
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  is_released_ = true;
  changed_.notify_one();
}

void WaitGroup::Wait(TimePoint deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_until(lock, deadline, [this] { return is_released_; });
}

void WaitGroup::GiveUp() noexcept {
  End();
  for (PendingWait& need : needs) need.server->impl().GiveUp(need);
}

void WaitGroup::Refuse(const Visibility& answer) {
  End();
  for (PendingWait& need : needs) need.server->impl().Refuse(need, answer);
}

void Say(std::optional<Visibility>& said, const Visibility& bare, std::string_view words) noexcept {
  said = bare;
  try {
    said->reason = words;
  } catch (const std::bad_alloc&) {
    return;
  }
}

// One that cannot be woken yet keeps no other waiting for ever.
void ReleaseAll(const Groups& groups) {
  for (const auto& group : groups) {
    if (group->is_alone() || threads::Insist([&] { return group->Conclude(); })) {
      threads::Insist([&] { group->Release(); });
    }
  }
}

void EndOutdated(const Groups& groups) {
  for (const auto& group : groups) {
    if (group->EndOutdated()) threads::Insist([&] { group->Release(); });
  }
}

void EndAll(const Groups& groups) {
  for (const auto& group : groups) {
    if (group->is_alone() || group->End()) threads::Insist([&] { group->Release(); });
  }
}

}  // namespace antipode
