/// \file
/// For a library that carries a context of its own (OpenTelemetry's RuntimeContext): it follows the scope, and may know
/// it.
#ifndef ANTIPODE_HOOKS_H_
#define ANTIPODE_HOOKS_H_

#include <cstdint>
#include <optional>

#include "antipode/export.h"
#include "antipode/scope.h"

namespace antipode ANTIPODE_EXPORT {

/// What follows our scopes. Its functions are called by any thread and must not throw.
struct ContextHooks {
  /// A scope, or null, becomes the calling thread's; the number is for `left`. 0: nothing to undo.
  std::uint64_t (*entered)(const ScopePtr& scope) = nullptr;
  /// The scope that came with this number is so no longer.
  void (*left)(std::uint64_t token) = nullptr;
  /// The scope of that library's current context, which goes before ours; nothing where it knows of none.
  std::optional<ScopePtr> (*current)() = nullptr;
};

/// Installs these for the process; one set at a time.
void SetContextHooks(const ContextHooks& hooks);

}  // namespace antipode

#endif  // ANTIPODE_HOOKS_H_
