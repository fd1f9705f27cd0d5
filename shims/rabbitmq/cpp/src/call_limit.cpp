#include "call_limit.h"

#include <pthread.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "antipode/logs.h"
#include "antipode/shim/shim_tools.h"

namespace antipode::rabbitmq {
namespace {

using Clock = CallLimit::Clock;

// The one thread that ends calls, begun with the first of them. It is never destroyed: a call may run while the process
// ends.
class Watchdog {
 public:
  void Add(const CallLimit* call) {
    const std::optional<std::string> refused = Added(call);
    if (!refused) return;
    // Behind the lock: the log is the application's, which may make a call of its own there, or wait.
    logs::Warn("AP209", "rabbitmq call limit",
               "calls of RabbitMQ connections have no deadline: the system gives no thread (" + *refused + ").");
  }

  void Remove(const CallLimit* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.erase({call->due(), call});
  }

 private:
  std::optional<std::string> Added(const CallLimit* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::optional<std::string> refused;
    if (!begun_) refused = Begin();
    try {
      calls_.emplace(call->due(), call);
    } catch (const std::bad_alloc& error) {  // the call goes on
      refused = error.what();
    }
    if (call->due() < wakes_) changed_.notify_one();
    return refused;
  }

  // Where the system gives no thread, its words; the next call asks for it again.
  std::optional<std::string> Begin() {
    try {
      Detach("antipode-calls", [this] { Run(); });
      begun_ = true;
      return std::nullopt;
    } catch (const std::exception& error) {  // no thread, or no memory for it
      return error.what();
    }
  }

  [[noreturn]] void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      const Clock::time_point now = Clock::now();
      while (!calls_.empty() && calls_.begin()->first <= now) {
        shutdown(calls_.begin()->second->socket(), SHUT_RDWR);
        calls_.erase(calls_.begin());
      }
      wakes_ = calls_.empty() ? now + kSleep : calls_.begin()->first;
      changed_.wait_until(lock, wakes_);
    }
  }

  static constexpr auto kSleep = std::chrono::hours(1);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::pair<Clock::time_point, const CallLimit*>> calls_;
  Clock::time_point wakes_ = Clock::time_point::max();
  bool begun_ = false;
};

std::atomic<Watchdog*> the_watchdog{nullptr};

Watchdog& TheWatchdog() {
  if (Watchdog* found = the_watchdog.load(std::memory_order_acquire)) return *found;
  static std::mutex making;
  const std::lock_guard<std::mutex> lock(making);
  if (Watchdog* found = the_watchdog.load(std::memory_order_acquire)) return *found;
  // The child of a fork has not got the thread: its first call begins another one. The parent's is left where it is.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { the_watchdog.store(nullptr); });
  static_cast<void>(registered);
  auto* const made = new Watchdog;  // NOLINT(cppcoreguidelines-owning-memory): left on purpose
  the_watchdog.store(made, std::memory_order_release);
  return *made;
}

}  // namespace

CallLimit::CallLimit(int socket, std::chrono::nanoseconds limit) : socket_(socket), due_(Clock::now() + limit) {
  if (socket_ >= 0) TheWatchdog().Add(this);
}

CallLimit::~CallLimit() {
  if (socket_ >= 0) TheWatchdog().Remove(this);
}

}  // namespace antipode::rabbitmq
