#include "base/fork.h"

#include <pthread.h>

#include <utility>
#include <vector>

namespace antipode {
namespace {

struct RegisteredParts {
  std::mutex mutex;
  std::vector<std::mutex*> outer;
  std::vector<std::mutex*> inner;
  std::vector<std::function<void()>> in_child;
};

struct Parts {
  std::mutex mutex;
  std::vector<ForkPart> all;
};

RegisteredParts& All() {
  static auto* const all = new RegisteredParts();
  return *all;
}

Parts& AllParts() {
  static auto* const parts = new Parts();
  return *parts;
}

void Before() {
  Parts& parts = AllParts();
  parts.mutex.lock();
  for (auto part = parts.all.rbegin(); part != parts.all.rend(); ++part) part->before();
  RegisteredParts& all = All();
  all.mutex.lock();
  for (std::mutex* mutex : all.outer) mutex->lock();
  for (std::mutex* mutex : all.inner) mutex->lock();
}

void Unlock() {
  RegisteredParts& all = All();
  for (std::mutex* mutex : all.inner) mutex->unlock();
  for (std::mutex* mutex : all.outer) mutex->unlock();
  all.mutex.unlock();
}

void InParent() {
  Unlock();
  for (const ForkPart& part : AllParts().all) part.in_parent();
  AllParts().mutex.unlock();
}

void InChild() {
  Unlock();
  for (const ForkPart& part : AllParts().all) part.in_child();
  AllParts().mutex.unlock();
  for (const auto& action : All().in_child) action();
}

RegisteredParts& Installed() {
  static const int installed = pthread_atfork(Before, InParent, InChild);
  static_cast<void>(installed);
  return All();
}

}  // namespace

void HoldRoundForks(std::mutex& mutex, LockOrder order) {
  RegisteredParts& all = Installed();
  const std::lock_guard<std::mutex> lock(all.mutex);
  (order == LockOrder::kOuter ? all.outer : all.inner).push_back(&mutex);
}

void OnForkInChild(std::function<void()> action) {
  RegisteredParts& all = Installed();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.in_child.push_back(std::move(action));
}

void AddForkPart(ForkPart part) {
  Installed();
  Parts& parts = AllParts();
  const std::lock_guard<std::mutex> lock(parts.mutex);
  parts.all.push_back(std::move(part));
}

}  // namespace antipode
