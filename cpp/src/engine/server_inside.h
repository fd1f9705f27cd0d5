/// \file
/// What a server holds: its proofs, whether it can be reached, who waits. All of it is guarded by its lock.
#ifndef ANTIPODE_ENGINE_SERVER_INSIDE_H_
#define ANTIPODE_ENGINE_SERVER_INSIDE_H_

#include <algorithm>
#include <any>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "antipode/server.h"
#include "engine/asker.h"
#include "engine/in_force.h"
#include "engine/pace.h"
#include "engine/proofs.h"
#include "engine/reachability.h"
#include "engine/waiters.h"

namespace antipode {

class Server::Inside {
 public:
  Inside(Server& server, Store& of, std::shared_ptr<Shim> with, std::string at, std::any to);

  /// What proves a position without a question: an answer to others, which is fresh enough.
  std::optional<Proof> KeptProof(const Need& need, TimePoint now) const;

  /// How far it is behind the store's other servers in this epoch, as far as they were seen; zero in another one
  /// (BAR-57).
  Duration LagOf(const std::string& epoch, TimePoint now) const;

  /// Nobody waits for anything here.
  Waiters NoWaiters() const { return Waiters(shim->OwnPace() > Duration::zero()); }

  /// In the child of a fork: the thread, its channel, its proofs and who waited stayed with the parent.
  void AfterFork();

  Store& store;
  const std::string store_name;
  const std::shared_ptr<Shim> shim;
  const std::string address;
  const std::any target;

  std::mutex mutex;
  Waiters waiters = NoWaiters();
  Proofs proofs;
  Growth growth;
  Reachability reach;
  TimePoint wanted_at = kNever;
  bool hurried = false;  // somebody has waited since the thread began, and not only followed writes for records

  Asker asker;
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_SERVER_INSIDE_H_
