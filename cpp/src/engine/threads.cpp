#include "engine/threads.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "antipode/barrier.h"

namespace antipode::threads {
namespace {

std::atomic<bool> process_ends{false};
thread_local bool on_engine_thread = false;

}  // namespace

bool MayStart() noexcept { return !process_ends.load(std::memory_order_acquire); }

bool OnEngineThread() noexcept { return on_engine_thread; }

std::thread Named(const std::string& name, std::function<void()> work) {
  EndWithProcess();
  // A new thread begins with the signals that its maker blocks.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([work = std::move(work), name = name.substr(0, 15)] {
    pthread_setname_np(pthread_self(), name.c_str());
    on_engine_thread = true;
    work();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
