/// \file
/// Reads that dry-run sends once more, to see whether they would have returned something else (spec REC-14).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_REPEATS_H_
#define ANTIPODE_SRC_DIAGNOSTICS_REPEATS_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "antipode/export.h"
#include "base/time.h"

namespace antipode ANTIPODE_EXPORT {

/// One thread does them, one after the other; what comes while too many wait is not repeated.
class Repeats {
 public:
  static constexpr std::size_t kMostWaiting = 100;
  /// `may`: false where there is no time for it any more, and it only says so.
  using Job = std::function<void(bool may)>;

  /// The one of this process.
  static Repeats& Instance();

  /// Has the thread do it; false where too many wait already.
  bool Later(Job job);

  /// Whether nothing is to be read again, and whoever wanted to know has been told.
  bool Idle();

  /// Says of what is left that it is not done, and ends the thread; it begins again where it is needed.
  void End();

  // Forks: what waits is the parent's (SCOPE-13)
  void BeforeFork() { mutex_.lock(); }
  void AfterForkInParent() { mutex_.unlock(); }
  void AfterForkInChild();

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job> jobs_;
  std::unique_ptr<std::thread> thread_;
  bool busy_ = false;
  bool ending_ = false;
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_REPEATS_H_
