/// \file
/// What a read of a wrapped client waits for, and what becomes of one that waited in vain: for shims (spec BAR-50,
/// BAR-51).
#ifndef ANTIPODE_SHIM_WAIT_ON_READ_H_
#define ANTIPODE_SHIM_WAIT_ON_READ_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "antipode/barrier_result.h"
#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/reading.h"
#include "antipode/result.h"
#include "antipode/scope.h"
#include "antipode/shim/server.h"

namespace antipode ANTIPODE_EXPORT {

/// Return the writes to its own store that a read must see before it is sent: of those that a `Reading` is `after`, or
/// with `waits` the scope knows. None where nothing waits, as in dry-run and off.
///
/// Fails, by the policies, where the lineage has writes to that store under a misspelt name, which no server can show:
/// the read is not to be sent then (BAR-6, BAR-51).
Result<std::vector<WriteId>> Required(const Store& store, const std::shared_ptr<ReadingBlock>& reading,
                                      const ScopePtr& scope, bool waits);

/// Waits at the read's own server for what the read must see first (`Required`).
///
/// The request's own deadline tightens `timeout`. In dry-run nothing waits: such reads are followed like others
/// (`FollowedRead`). True where nothing is missing, or nothing was wanted; false where the policies let it go on
/// without that. Fails with what a barrier says that waited in vain, by the policies.
Result<bool> WaitFirst(const std::shared_ptr<Server>& server, std::chrono::nanoseconds timeout,
                       const std::shared_ptr<ReadingBlock>& reading, const ScopePtr& scope, bool waits);

/// What the policies say of a read that waited in vain; nothing where it goes on. `judged`: the answer of its server,
/// late or unproven, with the store and server and how long the read waited as its reason. The error has the code of
/// that answer (OBS-15).
Result<void> WaitedInVain(const std::string& store, StoreResult judged, const ScopePtr& scope);

/// The same of a read of a moment that is past, which no wait makes newer: unproven, with the code AP514 (SHIM-48).
/// `words`: of which moment, and the way round.
Result<void> ReadsThePast(const std::string& store, const std::string& words, const ScopePtr& scope);

/// Blocks until one server has shown every write of the lineage to its store, for this long at most; nothing is
/// enforced.
StoreResult WaitForServer(const std::shared_ptr<Server>& server, const Lineage& lineage,
                          std::chrono::nanoseconds timeout);

}  // namespace antipode

#endif  // ANTIPODE_SHIM_WAIT_ON_READ_H_
