#include "scope/context.h"

#include <atomic>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "scope/hooks.h"
#include "scope/scope_impl.h"

namespace antipode::context {
namespace {

struct Layer {
  std::uint64_t number;
  Context context;
  std::uint64_t token;  // of the library whose own context follows ours, if one does
  bool is_block;
};

struct Layers {
  std::vector<Layer> stack;
  ~Layers() { alive = false; }
  static thread_local bool alive;
};

thread_local bool Layers::alive = true;

Layers& TheLayers() {
  thread_local Layers layers;
  return layers;
}

std::uint64_t NextNumber() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Takes the layers from this one on off; those above it are given to `above` first.
template <typename Above>
void TakeOff(std::size_t from, const Above& above) {
  std::vector<Layer>& stack = TheLayers().stack;
  while (stack.size() > from) {
    const Layer left = std::move(stack.back());  // taken off first: what it held may look at the context
    stack.pop_back();
    hooks::Left(left.token);
    if (stack.size() > from) above(left);
  }
}

// A child begins without any: what runs there is not the parent's request (SCOPE-13).
void ForgetInChild() {
  static const bool once = [] {
    OnForkInChild([] {
      if (Layers::alive) TakeOff(0, [](const Layer&) {});
    });
    return true;
  }();
  static_cast<void>(once);
}

// SCOPE-33: its block may go on, and nothing that it writes is in it any more.
void NoteAbove(const Layer& layer) {
  if (!layer.is_block || layer.context.scope == nullptr || layer.context.scope->closed()) return;
  layer.context.scope->MarkIncomplete("unscoped", {}, "the scope round it ended while it was current");
}

}  // namespace

const Context& Current() {
  static const auto* const none = new Context();
  if (!Layers::alive) return *none;
  const std::vector<Layer>& stack = TheLayers().stack;
  while (!stack.empty() && stack.back().is_block && stack.back().context.scope->impl().is_left()) {
    Leave(stack.back().number);
  }
  return stack.empty() ? *none : stack.back().context;
}

std::uint64_t Enter(Context context, bool is_block) {
  if (!Layers::alive) return 0;
  ForgetInChild();
  const std::uint64_t number = NextNumber();
  const std::uint64_t token = hooks::Entered(context.scope);
  TheLayers().stack.push_back({number, std::move(context), token, is_block});
  return number;
}

bool Leave(std::uint64_t entered) {
  if (!Layers::alive) return true;
  std::vector<Layer>& stack = TheLayers().stack;
  for (std::size_t i = stack.size(); i-- > 0;) {
    if (stack[i].number != entered) continue;
    TakeOff(i, NoteAbove);
    return true;
  }
  return false;
}

}  // namespace antipode::context
