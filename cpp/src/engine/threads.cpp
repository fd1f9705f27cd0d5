#include "engine/threads.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "antipode/barrier.h"
#include "antipode/shim/shim_tools.h"

namespace antipode::threads {
namespace {

std::atomic<bool> process_ends{false};

// Blocks all signals of this thread, and gives back what it blocked before, also where no thread is to be had (BAR-61).
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

std::thread NamedServers(const std::string& name, std::function<void()> work) {
  EndWithProcess();
  const BlockedSignals blocked;  // a new thread begins with the signals that its maker blocks
  return std::thread([work = std::move(work), name = name.substr(0, 15)] {
    pthread_setname_np(pthread_self(), name.c_str());
    BeEngineThread();
    work();
  });
}

}  // namespace

bool MayStart() noexcept { return !process_ends.load(std::memory_order_acquire); }

std::unique_ptr<std::thread> Start(const std::string& name, std::function<void()> work) {
  auto thread = std::make_unique<std::thread>();  // first: a thread that runs cannot be thrown away
  *thread = NamedServers(name, std::move(work));
  return thread;
}

void EndWithProcess() {
  static const int registered = std::atexit([] {
    process_ends.store(true, std::memory_order_release);
    Shutdown();
  });
  static_cast<void>(registered);
}

}  // namespace antipode::threads

namespace antipode {

void Detach(const std::string& name, std::function<void()> work) { threads::NamedServers(name, std::move(work)).detach(); }

}  // namespace antipode
