// Forks: no lock of ours is held by a thread that the child does not have, and what must not cross begins anew
// (SCOPE-13).
#ifndef ANTIPODE_SRC_BASE_FORK_H_
#define ANTIPODE_SRC_BASE_FORK_H_

#include <functional>
#include <mutex>

namespace antipode {

// In which order locks are taken before a fork: as the library itself takes them, outer ones first.
enum class LockOrder { kOuter, kInner };

// Holds this lock round every fork, so that the child finds it free and what it guards whole; for the life of the
// process.
void HoldRoundForks(std::mutex& mutex, LockOrder order);

// Calls this in the child of every fork, after locks are free again; for the life of the process.
void OnForkInChild(std::function<void()> action);

// What a part with locks of its own does round a fork: it takes them before any other of ours, and gives them back
// after.
struct ForkPart {
  std::function<void()> before;
  std::function<void()> in_parent;
  std::function<void()> in_child;
};

// One more such part, for the life of the process; parts that were added later take their locks first.
void AddForkPart(ForkPart part);

// Something with a lock `mutex` that a fork leaves whole in parent and child. It is never destroyed.
template <typename T, LockOrder order>
T& ForkSafe() {
  static T& held = []() -> T& {
    auto* const made = new T();
    HoldRoundForks(made->mutex, order);
    return *made;
  }();
  return held;
}

}  // namespace antipode

#endif  // ANTIPODE_SRC_BASE_FORK_H_
