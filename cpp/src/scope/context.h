// What a thread's current scope and reading block are, and what stood there before.
#ifndef ANTIPODE_SRC_SCOPE_CONTEXT_H_
#define ANTIPODE_SRC_SCOPE_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "antipode/export.h"
#include "antipode/scope.h"

namespace antipode ANTIPODE_EXPORT {

class ReadingBlock;

// One thread's context; each value on top of the one that it replaced.
struct Context {
  ScopePtr scope;
  std::shared_ptr<ReadingBlock> reading;
};

namespace context {

// The calling thread's context as it is now.
const Context& Current();

// Puts a context on top of the thread's; the number is for `Leave`. `is_block`: of the block that opened its scope, so
// that it is none any more where another thread has ended that (SCOPE-3).
std::uint64_t Enter(Context context, bool is_block = false);

// Takes that one off again, and what was put on top of it and not taken off. Of another thread's it takes nothing;
// whether it was there.
bool Leave(std::uint64_t entered);

// Notes that this process has known a lineage: what it sends outside any scope may depend on one (SCOPE-31).
void KnowLineage();

// Notes that a write began outside any scope: what leaves before its end may depend on it. One of unknown outcome is to
// be told by `KnowLineage` before its address may be another's.
void BeginOutside(const void* write);

// Returns whether it has known a lineage. `but`: a write that does not count, for what rests beside itself (SCOPE-32).
bool KnowsLineages(const void* but = nullptr);

// Begins as a process that has known none (tests).
void ForgetLineages();

}  // namespace context
}  // namespace antipode

#endif  // ANTIPODE_SRC_SCOPE_CONTEXT_H_
