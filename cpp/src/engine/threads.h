/// \file
/// The engine's threads: they begin where somebody waits, and are joined at `Shutdown` and when the process ends.
#ifndef ANTIPODE_ENGINE_THREADS_H_
#define ANTIPODE_ENGINE_THREADS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "base/own_thread.h"
#include "base/time.h"

namespace antipode::threads {

/// Whether a thread may be started: not while the process ends.
bool MayStart() noexcept;

/// Starts a thread that runs this with every signal blocked, so that the application's own threads get them. Throws
/// `std::system_error` or `std::bad_alloc` where none is to be had, and then none runs.
std::unique_ptr<std::thread> Start(const std::string& name, std::function<void()> work);

/// Has `Shutdown` run when the process ends, before what was made earlier is destroyed; done once.
void EndWithProcess();

constexpr Duration kRest = std::chrono::milliseconds(50);  // where this process has no memory

/// Does this again and again while this process has no memory for it: somebody waits for it (BAR-32, BAR-61).
template <class What>
auto Insist(const What& what) {
  while (true) {
    try {
      return what();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kRest);
    }
  }
}

}  // namespace antipode::threads

#endif  // ANTIPODE_ENGINE_THREADS_H_
