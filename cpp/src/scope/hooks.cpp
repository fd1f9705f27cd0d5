#include "scope/hooks.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace antipode {
namespace {

std::atomic<const ContextHooks*> installed{nullptr};

}  // namespace

void SetContextHooks(const ContextHooks& hooks) {
  // Another thread may still look at the old ones, also while the process ends: they are kept, and found by a leak
  // checker.
  static std::mutex mutex;
  static auto* kept = new std::deque<ContextHooks>;
  const std::lock_guard<std::mutex> lock(mutex);
  installed.store(&kept->emplace_back(hooks), std::memory_order_release);
}

namespace hooks {

std::uint64_t Entered(const ScopePtr& scope) {
  const ContextHooks* now = installed.load(std::memory_order_acquire);
  return now != nullptr && now->entered != nullptr ? now->entered(scope) : 0;
}

void Left(std::uint64_t token) {
  const ContextHooks* now = installed.load(std::memory_order_acquire);
  if (token != 0 && now != nullptr && now->left != nullptr) now->left(token);
}

std::optional<ScopePtr> Current() {
  const ContextHooks* now = installed.load(std::memory_order_acquire);
  return now != nullptr && now->current != nullptr ? now->current() : std::nullopt;
}

}  // namespace hooks
}  // namespace antipode
