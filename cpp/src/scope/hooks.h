// Calls to what follows our scopes, if anything does.
#ifndef ANTIPODE_SRC_SCOPE_HOOKS_H_
#define ANTIPODE_SRC_SCOPE_HOOKS_H_

#include "antipode/hooks.h"

namespace antipode::hooks {

std::uint64_t Entered(const ScopePtr& scope);
void Left(std::uint64_t token);
std::optional<ScopePtr> Current();

}  // namespace antipode::hooks

#endif  // ANTIPODE_SRC_SCOPE_HOOKS_H_
