#include "engine/completions.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/fork.h"
#include "engine/threads.h"

namespace antipode {
namespace {

constexpr std::size_t kManyRan = 1024;

void RunOnce(Completion& completion, bool due) {
  threads::Insist([&] { completion.Run(due); });
}

}  // namespace

Completions& Completions::Instance() {
  static auto* const instance = [] {
    auto* made = new Completions();  // outlives all threads
    AddForkPart({[made] { made->BeforeFork(); }, [made] { made->AfterForkInParent(); },
                 [made] { made->AfterForkInChild(); }});
    return made;
  }();
  return *instance;
}

bool Completions::After(const Alarm& one, const Alarm& other) noexcept {
  return one.moment != other.moment ? one.moment > other.moment : one.number > other.number;
}

void Completions::At(TimePoint moment, std::shared_ptr<Completion> completion) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Ensure()) {
      const bool first = alarms_.empty() || moment < alarms_.front().moment;
      alarms_.push_back({moment, numbers_++, std::move(completion)});
      std::push_heap(alarms_.begin(), alarms_.end(), After);
      if (first) changed_.notify_all();
      return;
    }
  }
  Now(std::move(completion));  // nothing would ring: its moment is now
}

void Completions::Now(std::shared_ptr<Completion> completion) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (completion->wanted_ || completion->ran_) return;
    if (Ensure()) {
      wanted_.push_back(completion);  // first: where there is no memory for it, its alarm runs it
      completion->wanted_ = true;
      if (wanted_.size() == 1) changed_.notify_all();
      return;
    }
    completion->wanted_ = completion->ran_ = true;
    ++ran_;
  }
  RunOnce(*completion, false);  // no thread is to be had: whoever ends the wait completes it (BAR-61)
}

void Completions::End() {
  std::unique_ptr<std::thread> thread;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!thread_ || thread_->get_id() == std::this_thread::get_id()) return;
    ending_ = true;
    thread = std::move(thread_);
    changed_.notify_all();
  }
  thread->join();
  const std::lock_guard<std::mutex> lock(mutex_);
  ending_ = false;
}

bool Completions::Ensure() {
  if (thread_ || ending_ || !threads::MayStart()) return true;
  try {
    thread_ = threads::Start("antipode-done", [this] { Run(); });
    return true;
  } catch (const std::exception&) {  // no thread, or no memory for it
    return false;
  }
}

void Completions::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    std::vector<std::pair<std::shared_ptr<Completion>, bool>> now;
    try {
      Take(now);
    } catch (const std::bad_alloc&) {  // what was not taken is there still (BAR-61)
      if (now.empty()) {
        changed_.wait_for(lock, threads::kRest);
        continue;
      }
    }
    for (auto& each : now) each.first->ran_ = true;
    for (auto& each : now) ran_ += each.second ? 0 : 1;
    if (!now.empty()) {
      lock.unlock();
      for (auto& [completion, due] : now) {
        RunOnce(*completion, due);
        completion.reset();
      }
      lock.lock();
      Sweep();
      continue;
    }
    if (ending_) return;
    if (alarms_.empty()) {
      changed_.wait(lock);
    } else {
      const TimePoint next = alarms_.front().moment;  // the wait looks at it again when the alarms may have moved
      changed_.wait_until(lock, next);
    }
  }
}

// Takes what is to run now; the lock is held. There is room for each before it is moved.
void Completions::Take(std::vector<std::pair<std::shared_ptr<Completion>, bool>>& now) {
  now.reserve(wanted_.size());
  for (auto& completion : wanted_) now.emplace_back(std::move(completion), false);
  wanted_.clear();
  const TimePoint moment = Clock::now();
  while (!alarms_.empty() && (ending_ || alarms_.front().moment <= moment)) {
    if (now.size() == now.capacity()) now.reserve(2 * now.size() + 1);
    std::pop_heap(alarms_.begin(), alarms_.end(), After);
    std::shared_ptr<Completion> completion = std::move(alarms_.back().completion);
    alarms_.pop_back();
    if (completion->ran_) {
      --ran_;
    } else if (!completion->wanted_) {
      now.emplace_back(std::move(completion), true);
    }
  }
}

// Alarms of what is done already would keep it in memory until their moment.
void Completions::Sweep() {
  if (ran_ < kManyRan || ran_ * 2 < alarms_.size()) return;
  alarms_.erase(std::remove_if(alarms_.begin(), alarms_.end(), [](const Alarm& each) { return each.completion->ran_; }),
                alarms_.end());
  std::make_heap(alarms_.begin(), alarms_.end(), After);
  ran_ = 0;
}

void Completions::AfterForkInChild() {
  // What is left would call the parent's application back; it is left where it is.
  new std::vector<Alarm>(std::move(alarms_));                           // NOLINT(cppcoreguidelines-owning-memory)
  new std::vector<std::shared_ptr<Completion>>(std::move(wanted_));     // NOLINT(cppcoreguidelines-owning-memory)
  alarms_.clear();
  wanted_.clear();
  static_cast<void>(thread_.release());
  ending_ = false;
  mutex_.unlock();
  new (&changed_) std::condition_variable();  // a thread of the parent waits on it
}

}  // namespace antipode
