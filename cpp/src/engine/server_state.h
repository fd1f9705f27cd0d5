/// \file
/// What the engine holds of a server: its proofs, whether it can be reached, who waits; guarded by its lock.
#ifndef ANTIPODE_ENGINE_SERVER_STATE_H_
#define ANTIPODE_ENGINE_SERVER_STATE_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "antipode/shim/server.h"
#include "base/in_force.h"
#include "engine/pace.h"
#include "engine/proofs.h"
#include "engine/reachability.h"
#include "engine/waiters.h"

namespace antipode {

class ServerState {
 public:
  ServerState(Store& of, std::shared_ptr<Shim> with);

  /// What proves a position without a question: an answer to others, which is fresh enough.
  std::optional<Proof> KeptProof(const PendingWait& need, TimePoint now) const;

  /// How far it is behind the store's other servers in this epoch, as far as they were seen; zero in another one
  /// (BAR-57).
  Duration LagOf(const std::string& epoch, TimePoint now) const;

  /// Nobody waits for anything here.
  WaitQueue NoWaiters() const { return WaitQueue(shim->OwnPace() > Duration::zero()); }

  /// In the child of a fork: the proofs and who waited stayed with the parent.
  void AfterFork();

  Store& store;
  const std::string store_name;
  const std::shared_ptr<Shim> shim;

  std::mutex mutex;
  WaitQueue waiters = NoWaiters();
  Proofs proofs;
  Growth growth;
  Reachability reach;
  TimePoint wanted_at = kNever;
  bool hurried = false;  // somebody has waited since the thread began, and not only followed writes for records
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_SERVER_STATE_H_
