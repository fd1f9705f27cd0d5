// What a thread's current scope and reading block are, and what stood there before.
#ifndef ANTIPODE_SRC_CONTEXT_H_
#define ANTIPODE_SRC_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "antipode/scope.h"

namespace antipode {

class ReadingBlock;

// One thread's context; each value on top of the one that it replaced.
struct Context {
  ScopePtr scope;
  std::shared_ptr<ReadingBlock> reading;
};

namespace context {

// The calling thread's context as it is now.
const Context& Current();

// Puts a context on top of the thread's; the number is for `Leave`.
std::uint64_t Enter(Context context);

// Takes that one off again, and what was put on top of it and not taken off. Of another thread's it takes nothing.
void Leave(std::uint64_t entered);

}  // namespace context
}  // namespace antipode

#endif  // ANTIPODE_SRC_CONTEXT_H_
