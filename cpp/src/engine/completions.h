/// \file
/// The thread that ends barriers nobody blocks on: at their release, at their deadline, when they are cancelled.
#ifndef ANTIPODE_ENGINE_COMPLETIONS_H_
#define ANTIPODE_ENGINE_COMPLETIONS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "antipode/export.h"
#include "base/time.h"

namespace antipode ANTIPODE_EXPORT {

/// Work that the thread does once: as soon as it is wanted, and at a moment at the latest.
class Completion {
 public:
  virtual ~Completion() = default;

  /// Called once, by the thread. `due`: the moment had come before anybody wanted it.
  virtual void Run(bool due) = 0;

 private:
  friend class Completions;
  bool wanted_ = false;  // guarded by the lock of `Completions`
  bool ran_ = false;
};

class Completions {
 public:
  /// The one of this process.
  static Completions& Instance();

  /// Has it run at this moment, unless somebody wants it before.
  void At(TimePoint moment, std::shared_ptr<Completion> completion);

  /// Has it run now; any thread, also more than once.
  void Now(std::shared_ptr<Completion> completion);

  /// Runs what is left, as if its moment had come, and ends the thread; it begins again where it is needed.
  void End();

  // Forks: what is left is the parent's (SCOPE-13)
  void BeforeFork() { mutex_.lock(); }
  void AfterForkInParent() { mutex_.unlock(); }
  void AfterForkInChild();

 private:
  struct Alarm {
    TimePoint moment;
    std::uint64_t number;
    std::shared_ptr<Completion> completion;
  };

  static bool After(const Alarm& one, const Alarm& other) noexcept;
  /// Begins the thread where none runs; false where none is to be had. The lock is held.
  bool Ensure();
  void Run();
  void Take(std::vector<std::pair<std::shared_ptr<Completion>, bool>>& now);
  void Sweep();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Alarm> alarms_;  // a heap, the earliest first
  std::vector<std::shared_ptr<Completion>> wanted_;
  std::uint64_t numbers_ = 0;
  std::size_t ran_ = 0;  // alarms whose work was done before their moment
  std::unique_ptr<std::thread> thread_;
  bool ending_ = false;
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_COMPLETIONS_H_
