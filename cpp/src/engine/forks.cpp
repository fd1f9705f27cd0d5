#include "engine/forks.h"

#include <memory>

#include "engine/registry.h"
#include "fork.h"

namespace antipode::forks {
namespace {

// The registry that is held while the process forks.
std::shared_ptr<Registry>& Held() {
  static auto* const held = new std::shared_ptr<Registry>();
  return *held;
}

void Before() {
  Held() = HoldRegistry();
  Held()->BeforeFork();
}

void InParent() {
  Held()->AfterForkInParent();
  Held().reset();
  LetRegistryGo();
}

void InChild() {
  Held()->AfterForkInChild();
  Held().reset();
  LetRegistryGo();
}

}  // namespace

void Install() {
  static const bool installed = [] {
    AddForkPart({Before, InParent, InChild});
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace antipode::forks
