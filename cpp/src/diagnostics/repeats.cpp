#include "diagnostics/repeats.h"

#include <exception>
#include <new>
#include <utility>

#include "base/fork.h"
#include "diagnostics/record.h"
#include "engine/threads.h"

namespace antipode {
namespace {

void Do(const Repeats::Job& job, bool may) noexcept {
  records::Try([&] { job(may); });
}

}  // namespace

Repeats& Repeats::Instance() {
  static auto* const instance = [] {
    auto* made = new Repeats();  // outlives all threads
    AddForkPart({[made] { made->BeforeFork(); }, [made] { made->AfterForkInParent(); },
                 [made] { made->AfterForkInChild(); }});
    return made;
  }();
  return *instance;
}

bool Repeats::Later(Job job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ending_ || jobs_.size() >= kMostWaiting) return false;
  if (!thread_ && !threads::MayStart()) return false;
  try {
    if (!thread_) thread_ = threads::Start("antipode-repeat", [this] { Run(); });
    jobs_.push_back(std::move(job));
  } catch (const std::exception&) {  // no thread, or no memory, is to be had: it is not repeated (BAR-61)
    return false;
  }
  changed_.notify_one();
  return true;
}

void Repeats::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.erase(jobs_.begin());
    const bool may = !ending_;
    busy_ = true;
    lock.unlock();
    Do(job, may);
    job = nullptr;  // what it holds goes without the lock
    lock.lock();
    busy_ = false;
  }
}

bool Repeats::Idle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return jobs_.empty() && !busy_;
}

void Repeats::End() {
  std::unique_ptr<std::thread> thread;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!thread_ || thread_->get_id() == std::this_thread::get_id()) return;
    ending_ = true;
    thread = std::move(thread_);
    changed_.notify_one();
  }
  thread->join();
  const std::lock_guard<std::mutex> lock(mutex_);
  ending_ = false;
}

void Repeats::AfterForkInChild() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): left where it is, with what it holds.
  new std::vector<Job>(std::move(jobs_));
  jobs_.clear();
  static_cast<void>(thread_.release());
  busy_ = false;
  ending_ = false;
  mutex_.unlock();
  new (&changed_) std::condition_variable();  // a thread of the parent waits on it
}

}  // namespace antipode
