#include "fork.h"

#include <pthread.h>

#include <utility>
#include <vector>

namespace antipode {
namespace {

struct Registered {
  std::mutex mutex;
  std::vector<std::mutex*> outer;
  std::vector<std::mutex*> inner;
  std::vector<std::function<void()>> in_child;
};

Registered& All() {
  static auto* const all = new Registered();
  return *all;
}

void Before() {
  Registered& all = All();
  all.mutex.lock();
  for (std::mutex* mutex : all.outer) mutex->lock();
  for (std::mutex* mutex : all.inner) mutex->lock();
}

void Unlock() {
  Registered& all = All();
  for (std::mutex* mutex : all.inner) mutex->unlock();
  for (std::mutex* mutex : all.outer) mutex->unlock();
  all.mutex.unlock();
}

void InChild() {
  Unlock();
  for (const auto& action : All().in_child) action();
}

Registered& Installed() {
  static const int installed = pthread_atfork(Before, Unlock, InChild);
  static_cast<void>(installed);
  return All();
}

}  // namespace

void HoldRoundForks(std::mutex& mutex, LockOrder order) {
  Registered& all = Installed();
  const std::lock_guard<std::mutex> lock(all.mutex);
  (order == LockOrder::kOuter ? all.outer : all.inner).push_back(&mutex);
}

void OnForkInChild(std::function<void()> action) {
  Registered& all = Installed();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.in_child.push_back(std::move(action));
}

}  // namespace antipode
